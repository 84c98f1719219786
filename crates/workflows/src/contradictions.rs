//! Lists contradictions between verdicts and ratings, and resolves them.

use karat_evals::agreement::{ContradictionList, ResolvedContradiction};
use karat_evals::contradiction::{Contradiction, ContradictionFilter, Resolution, ResolutionKind};
use karat_evals::port::ComparisonStore;
use karat_json::text::counted;

use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::stored_eval::find_eval;
use crate::trace_filter::TraceOrigin;
use crate::trace_id::resolve_trace_id;

pub struct ListRequest {
    /// An eval, by name with or without `eval_`; default: all.
    pub eval: Option<String>,
    /// Also list resolved contradictions.
    pub all: bool,
    /// The traces whose contradictions are listed.
    pub origin: TraceOrigin,
    pub limit: Option<u64>,
}

pub async fn list(request: ListRequest, context: &Context<'_>) -> Result<ContradictionList, Error> {
    let ListRequest { eval, all, origin, limit } = request;
    let (source, excluded_source) = origin.sources();
    context
        .read_store(async |store| {
            let eval_id = match &eval {
                Some(name) => Some(find_eval(store, name).await?.eval_id),
                None => None,
            };
            let open = ContradictionFilter {
                eval_id,
                source: source.clone(),
                excluded_source: excluded_source.clone(),
                ..ContradictionFilter::default()
            };
            let any = ContradictionFilter { resolved: true, ..open.clone() };
            let count_open = store.count_contradictions(&open).await?;
            let count_all = store.count_contradictions(&any).await?;
            let (filter, total, resolved) =
                if all { (any, count_all, 0) } else { (open, count_open, count_all.saturating_sub(count_open)) };
            if origin == TraceOrigin::Production {
                let (source, excluded_source) = TraceOrigin::Runs.sources();
                let on_runs = ContradictionFilter { source, excluded_source, ..filter.clone() };
                note_run_contradictions(store.count_contradictions(&on_runs).await?, context);
            }
            let filter = ContradictionFilter { limit, ..filter };
            Ok(ContradictionList { contradictions: store.contradictions(&filter).await?, total, resolved })
        })
        .await
}

fn note_run_contradictions(count: u64, context: &Context<'_>) {
    if count > 0 {
        let contradictions = counted(usize::try_from(count).unwrap_or(usize::MAX), "contradiction");
        context
            .notices
            .note(&format!("{contradictions} on traces of test runs left out; pass --source all to include them"));
    }
}

pub struct ResolveRequest {
    pub eval: String,
    /// A trace id or its prefix.
    pub trace: String,
    pub kind: ResolutionKind,
    pub note: Option<String>,
    pub author: String,
}

pub async fn resolve(request: ResolveRequest, context: &Context<'_>) -> Result<ResolvedContradiction, Error> {
    let ResolveRequest { eval, trace, kind, note, author } = request;
    let note = note.filter(|note| !note.trim().is_empty());
    let resolution = Resolution { kind, note, author, resolved_at: context.clock.now() };
    context
        .read_store(async |store| {
            let eval_id = find_eval(store, &eval).await?.eval_id;
            let trace_id = resolve_trace_id(store, &trace).await?;
            let filter = ContradictionFilter {
                eval_id: Some(eval_id.clone()),
                trace_id: Some(trace_id.clone()),
                resolved: true,
                limit: Some(1),
                ..ContradictionFilter::default()
            };
            let no_contradiction = || {
                Error::nothing_selected(format!("{eval_id} has no contradiction on trace {trace_id}"))
                    .hint(Hint::ListContradictions { eval: eval_id.clone() })
            };
            let contradictions = store.contradictions(&filter).await?;
            let contradiction = contradictions.into_iter().next().ok_or_else(no_contradiction)?;
            let before = contradiction.resolution.as_ref().map(|resolution| resolution.kind);
            if !store.resolve(&eval_id, &trace_id, &resolution).await? {
                // The trace was judged or rated again in the meantime.
                return Err(no_contradiction());
            }
            let contradiction = Contradiction { resolution: Some(resolution), ..contradiction };
            Ok(ResolvedContradiction { contradiction, before })
        })
        .await
}

//! Lists contradictions between verdicts and ratings, and resolves them.

use karat_evals::agreement::{ContradictionList, ResolvedContradiction};
use karat_evals::contradiction::{Contradiction, ContradictionFilter, Resolution, ResolutionKind};
use karat_evals::port::ComparisonStore;

use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::stored_eval::find_eval;
use crate::trace_id::resolve_trace_id;

pub struct ListRequest {
    /// An eval, by name with or without `eval_`; default: all.
    pub eval: Option<String>,
    /// Also list resolved contradictions.
    pub all: bool,
    pub limit: Option<u64>,
}

pub async fn list(request: ListRequest, context: &Context<'_>) -> Result<ContradictionList, Error> {
    let ListRequest { eval, all, limit } = request;
    context
        .read_store(async |store| {
            let eval_id = match &eval {
                Some(name) => Some(find_eval(store, name).await?.eval_id),
                None => None,
            };
            let open = ContradictionFilter { eval_id, trace_id: None, resolved: false, limit: None };
            let any = ContradictionFilter { resolved: true, ..open.clone() };
            let count_open = store.count_contradictions(&open).await?;
            let count_all = store.count_contradictions(&any).await?;
            let (filter, total, resolved) =
                if all { (any, count_all, 0) } else { (open, count_open, count_all.saturating_sub(count_open)) };
            let filter = ContradictionFilter { limit, ..filter };
            Ok(ContradictionList { contradictions: store.contradictions(&filter).await?, total, resolved })
        })
        .await
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
            };
            let no_contradiction = || {
                Error::nothing_selected(format!("{eval_id} has no contradiction on trace {trace_id}"))
                    .hint(Hint::ListContradictions { eval: eval_id.clone() })
            };
            let found = store.contradictions(&filter).await?;
            let contradiction = found.into_iter().next().ok_or_else(no_contradiction)?;
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

//! `karat review`: traces one after the other, rated by a person at the terminal.

mod desk;
mod screen;

use karat_core::exit::ExitStatus;
use karat_core::port::{Clock, FeedbackStore, TraceStore};
use karat_core::review::{Sitting, order};
use karat_core::stored::TraceFilter;
use karat_report::review_summary;
use karat_store::Store;
use tokio::runtime::Runtime;

use self::desk::{Desk, Next};
use self::screen::Screen;
use crate::args::ReviewArgs;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{keep_store, open_store_to_read};
use karat_workflows::context::clock::SystemClock;
use karat_workflows::stored_eval::find_eval;
use karat_workflows::trace_filter::nothing_fits;

pub(crate) fn run(args: &ReviewArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    if !environment.stdin_is_terminal || !environment.stderr_is_terminal {
        return Err(Failure::invalid("a review needs a terminal")
            .hint("'karat feedback add TRACE RATING' rates one trace, 'karat feedback import FILE' many"));
    }
    let author = args.author.name(environment)?;
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let filter = args.filter.filter(SystemClock.now())?;
    let runtime = Runtime::new().map_err(|error| Failure::errored(format!("cannot start: {error}")))?;
    let interrupts = Interrupts::listen(&runtime);
    let opened = keep_store(open_store_to_read(&settings), async |store| sitting(args, &author, &filter, store).await);
    let (store, sitting) = runtime.block_on(interrupts.unless_asked(opened))?;
    let mut desk = Desk::new(&store, &runtime, sitting, author, args.show_verdicts, printer);
    let next = review(&mut desk, &interrupts, printer);
    runtime.block_on(store.close());
    // The terminal is as it was before: what came of it can be told.
    let mut told = review_summary(desk.sitting()).join("\n");
    told.push('\n');
    let told = printer.print(&told);
    match next? {
        // Where the terminal is gone, nobody is left to tell.
        Next::Interrupt => Ok(ExitStatus::Interrupted),
        _ => told.map(|()| ExitStatus::Success),
    }
}

/// Shows the desk until the person leaves.
fn review(desk: &mut Desk<'_>, interrupts: &Interrupts, printer: &Printer) -> Result<Next, Failure> {
    let screen = Screen::enter(printer)?;
    desk.lay_out()?;
    loop {
        screen.draw(&desk.rows(), desk.cursor());
        let next = match screen.input(interrupts) {
            screen::Input::Key(key) => desk.press(key)?,
            screen::Input::Pasted(text) => desk.paste(&text),
            screen::Input::Resized => desk.lay_out().map(|()| Next::Stay)?,
            screen::Input::Interrupted => Next::Interrupt,
        };
        if next != Next::Stay {
            return Ok(next);
        }
    }
}

/// Finds the traces to be looked at, the most informative first.
async fn sitting(args: &ReviewArgs, author: &str, filter: &TraceFilter, store: &Store) -> Result<Sitting, Failure> {
    let eval = match &args.eval {
        Some(name) => Some(find_eval(store, name).await?.eval_id),
        None => None,
    };
    let candidates = store.review_candidates(author, eval.as_deref(), filter).await?;
    if candidates.is_empty() {
        return Err(nothing_to_review(args, author, filter, store).await?);
    }
    let mut queue = order(candidates);
    let most = args.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let beyond = queue.len().saturating_sub(most);
    queue.truncate(most);
    Ok(Sitting::new(queue, beyond))
}

/// Says why there is nothing to be looked at.
async fn nothing_to_review(
    args: &ReviewArgs,
    author: &str,
    filter: &TraceFilter,
    store: &Store,
) -> Result<Failure, Failure> {
    let all = store.count_traces(&TraceFilter::default()).await?;
    let meant = store.count_traces(filter).await?;
    Ok(match (all, meant, &args.eval) {
        (0, _, _) => Failure::nothing_selected("there are no traces in the store").hint("'karat trace import FILE'"),
        (_, 0, _) => nothing_fits(filter, store).await?.into(),
        (_, _, Some(eval)) => {
            Failure::nothing_selected(format!("{author} has rated every trace that {eval} has judged"))
                .hint(format!("'karat eval run {eval} --stored' judges what is missing"))
        }
        (_, _, None) => Failure::nothing_selected(format!("{author} has rated every trace"))
            .hint("'karat feedback list' shows what was said, 'karat feedback add' changes it"),
    })
}

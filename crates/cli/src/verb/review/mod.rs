//! `karat review`: traces one after the other, rated by a person at the terminal.

mod screen;
mod terminal;

use karat_core::exit::ExitStatus;
use karat_report::review_summary;
use karat_workflows::review::{Request, ReviewSession};
use karat_workflows::{CancellationToken, Error};

use self::screen::{Next, ReviewScreen};
use self::terminal::{Input, RawTerminal};
use crate::args::ReviewArgs;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

pub(crate) fn run(args: &ReviewArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let (environment, printer) = (surface.environment, surface.printer.as_ref());
    if !environment.stdin_is_terminal || !environment.stderr_is_terminal {
        return Err(Failure::invalid("a review needs a terminal")
            .hint("'karat feedback add TRACE RATING' rates one trace, 'karat feedback import FILE' many"));
    }
    let author = args.author.name(environment)?;
    let context = surface.store_context(&args.store)?;
    let request = Request {
        author,
        eval: args.eval.clone(),
        filter: args.filter.filter(context.clock.now())?,
        limit: args.limit,
        show_verdicts: args.show_verdicts,
    };
    surface.converse(async |cancel| {
        let starting = Box::pin(cancel.run_until_cancelled(ReviewSession::start(request, &context))).await;
        let mut screen = ReviewScreen::new(starting.unwrap_or_else(|| Err(Error::cancelled()))?, printer);
        let ended = show(&mut screen, &cancel, printer).await;
        let review = screen.close().await;
        // The terminal is as it was before, so the summary stays on it.
        let summary = printer.print(&(review_summary(&review.queue).join("\n") + "\n"));
        match ended? {
            // Where the terminal is gone, nobody reads the summary.
            Next::Interrupt => Ok(ExitStatus::Interrupted),
            _ => summary.map(|()| ExitStatus::Success),
        }
    })
}

/// Shows the review until the person leaves.
async fn show(screen: &mut ReviewScreen<'_>, cancel: &CancellationToken, printer: &Printer) -> Result<Next, Failure> {
    let terminal = RawTerminal::enter(printer)?;
    screen.lay_out().await?;
    loop {
        terminal.draw(&screen.rows(), screen.cursor());
        let next = match terminal.input(cancel) {
            Input::Key(key) => screen.press(key).await?,
            Input::Pasted(text) => screen.paste(&text),
            Input::Resized => screen.lay_out().await.map(|()| Next::Stay)?,
            Input::Interrupted => Next::Interrupt,
        };
        if next != Next::Stay {
            return Ok(next);
        }
    }
}

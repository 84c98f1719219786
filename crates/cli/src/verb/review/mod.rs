//! `karat review`: rates traces one by one in the terminal.

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
        return Err(Failure::invalid("karat review needs a terminal")
            .hint("run 'karat feedback add TRACE RATING' or 'karat feedback import FILE' instead"));
    }
    let author = args.author.name(environment)?;
    let context = surface.context(&[])?;
    let request = Request {
        author,
        eval: args.eval.clone(),
        filter: args.filter.filter(context.clock.now())?,
        limit: args.limit.filter(|limit| *limit > 0),
        show_verdicts: args.show_verdicts,
    };
    surface.run_interactive(async |cancel| {
        let session = Box::pin(cancel.run_until_cancelled(ReviewSession::start(request, &context))).await;
        let mut screen = ReviewScreen::new(session.unwrap_or_else(|| Err(Error::cancelled()))?, printer);
        let result = show(&mut screen, &cancel, printer).await;
        let review = screen.close().await;
        // The terminal is restored, so the summary stays visible.
        let summary = printer.print(&(review_summary(&review.queue).join("\n") + "\n"));
        match result? {
            // Errors of printing the summary are ignored, since the terminal may be closed.
            Next::Interrupt => Ok(ExitStatus::Interrupted),
            _ => summary.map(|()| ExitStatus::Success),
        }
    })
}

/// Shows the review until the user quits.
async fn show(screen: &mut ReviewScreen<'_>, cancel: &CancellationToken, printer: &Printer) -> Result<Next, Failure> {
    let terminal = RawTerminal::enter(printer)?;
    screen.layout().await?;
    loop {
        terminal.draw(&screen.rows(), screen.cursor());
        let next = match terminal.input(cancel) {
            Input::Key(key) => screen.handle_key(key).await?,
            Input::Pasted(text) => screen.paste(&text),
            Input::Resized => screen.layout().await.map(|()| Next::Continue)?,
            Input::Interrupted => Next::Interrupt,
        };
        if next != Next::Continue {
            return Ok(next);
        }
    }
}

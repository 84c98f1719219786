//! The checks of the sandbox.

use std::fmt::Write as _;

use karat_workflows::doctor::{GuaranteeReport, GuestReport, LimitsReport};

use crate::console::ConsoleSettings;
use crate::duration::duration_text;
use crate::style::Palette;
use crate::terminal_text::{pad, printable, wrap};
use crate::tools::counted;

fn row(name: &str, text: &str) -> String {
    format!("{name:<13} {}\n", printable(text))
}

/// Renders the version of Python and the origin of the guest.
pub fn guest_text(guest: &GuestReport) -> String {
    let version = guest.python_version.as_deref().unwrap_or("unknown version");
    let python = match guest.build_tools {
        Some(build_tools) => format!("{version}, built by {build_tools}"),
        None => version.to_owned(),
    };
    let origin = guest.file.as_deref().unwrap_or("built in");
    row("Python", &python) + &row("guest", &format!("{}, {origin}", guest.hash))
}

/// Renders the limits, the isolation and the method of restoring memory.
pub fn limits_text(load_ms: u64, limits: LimitsReport, restore_method: &str) -> String {
    let LimitsReport { time_ms, memory_mb, output_kb } = limits;
    row("", &format!("loaded in {}", duration_text(load_ms)))
        + &row("limits", &format!("{time_ms} ms and {memory_mb} MB per trace, {output_kb} KB of output"))
        + &row("isolation", "every trace starts with the same Python memory")
        + &row("restored by", &restore_text(restore_method))
        + "\n"
}

fn restore_text(method: &str) -> String {
    let explanation = match method {
        "write-protection" => "only written pages are restored",
        "private-pages" => "pages that were ever written are compared",
        _ => "all memory is copied after each trace, which takes about 1 ms",
    };
    format!("{method} ({explanation})")
}

/// Renders a checked guarantee.
pub fn guarantee_text(guarantee: &GuaranteeReport, settings: ConsoleSettings) -> String {
    let ConsoleSettings { columns, symbols, palette, .. } = settings;
    let elapsed = duration_text(guarantee.elapsed_ms);
    let (symbol, elapsed) = if guarantee.held {
        (palette.success(symbols.passed), palette.dim(format!("{elapsed:>8}")))
    } else {
        (palette.failure(symbols.failed), palette.failure(format!("{elapsed:>8}  FAILED")))
    };
    let mut text = format!("  {symbol} {}{elapsed}\n", pad(guarantee.name, 42));
    if let Some(instead) = &guarantee.instead {
        let lines = wrap(&printable(instead), columns.saturating_sub(8).max(20));
        let _ = writeln!(text, "    {} {}", symbols.arrow, lines.join("\n       "));
    }
    text
}

/// Renders the number of checks and of failed ones.
pub fn guarantees_text(guarantees: &[GuaranteeReport], palette: Palette) -> String {
    let failed = guarantees.iter().filter(|guarantee| !guarantee.held).count();
    let count = counted(guarantees.len(), "check");
    match failed {
        0 => palette.success(format!("{count} passed\n")),
        _ => palette.failure(format!("{count}, {failed} failed: do not run untrusted code\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Verbosity;
    use crate::style::Symbols;

    #[test]
    fn shows_failed_checks() {
        let palette = Palette { color: false };
        let console = ConsoleSettings { columns: 80, symbols: Symbols::ASCII, palette, verbosity: Verbosity::Normal };
        let guarantee = |instead: Option<String>| GuaranteeReport {
            name: "time: a loop",
            held: instead.is_none(),
            instead,
            elapsed_ms: 7,
        };
        let failed = guarantee(Some(format!("internal: {}", "x".repeat(100))));
        let text = guarantee_text(&failed, console);
        assert!(text.starts_with("  FAIL time: a loop ") && text.contains("7 ms  FAILED\n    -> internal:"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");

        let all = [failed, guarantee(None)];
        assert_eq!(guarantees_text(&all, palette), "2 checks, 1 failed: do not run untrusted code\n");
        assert_eq!(guarantees_text(&all[1..], palette), "1 check passed\n");
    }
}

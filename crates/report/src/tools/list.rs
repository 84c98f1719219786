//! The table of `karat tools`.

use std::fmt::Write as _;

use karat_cases::registry::ToolField;
use karat_tools::tool_list::{ToolEntry, ToolList};

use super::counted;
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{pad, printable, truncate, truncate_start, width, wrap};

/// Space between two columns.
const GAP: usize = 2;

/// Minimum width of a truncated location.
const MIN_LOCATION_WIDTH: usize = 20;

/// Minimum width of a truncated description.
const MIN_DESCRIPTION_WIDTH: usize = 30;

/// Maximum width of a description; `--format json` has it in full.
const MAX_DESCRIPTION_WIDTH: usize = 80;

/// Maximum width of a version or status.
const MAX_WORD_WIDTH: usize = 12;

/// Maximum width of the name column; longer names overflow it.
const MAX_NAMES_WIDTH: usize = 64;

/// Shown for a value that is known only at run time.
const UNKNOWN: &str = "unknown";

/// Renders the tools, their unknown fields, and their token counts. Rows are truncated only on a terminal, so that
/// other output can be searched.
pub fn tool_list_text(list: &ToolList, settings: ConsoleSettings, screen: Option<usize>) -> String {
    let mut out = String::new();
    if settings.verbosity != Verbosity::Quiet && !list.tools.is_empty() {
        Table::new(list, settings, screen).write(&mut out);
        footnotes(list, settings, &mut out);
        out.push('\n');
    }
    let _ = writeln!(out, "{}", wrap(&total(list), settings.columns.max(20)).join("\n"));
    out
}

fn total(list: &ToolList) -> String {
    let totals = list.totals;
    let has_unknown =
        |tool: &ToolEntry| tool.is_unknown(ToolField::Description) || tool.is_unknown(ToolField::InputSchema);
    let limit = if list.tools.iter().any(has_unknown) { ", as far as known" } else { "" };
    format!(
        "{}: {} in descriptions, {} in schemas{limit}",
        counted(totals.tools, "tool"),
        counted(totals.description_tokens, "token"),
        totals.schema_tokens
    )
}

/// Explains where and why fields are unknown.
fn footnotes(list: &ToolList, settings: ConsoleSettings, out: &mut String) {
    let unknown = list.tools.iter().flat_map(|tool| tool.unknown.iter().map(move |unknown| (tool, unknown)));
    for (number, (tool, unknown)) in unknown.enumerate() {
        if number == 0 {
            out.push('\n');
        }
        let line = format!(
            "{}: the {} of '{}' is {UNKNOWN}: {}",
            unknown.location,
            unknown.field.name(),
            tool.name,
            unknown.reason
        );
        let lines = wrap(&printable(&line), settings.columns.saturating_sub(2).max(20));
        let _ = writeln!(out, "{}", lines.join("\n  "));
    }
}

/// Returns the first sentence of a description, on one line.
fn description_start(text: &str, ellipsis: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = line.find(". ").map_or(line.as_str(), |end| &line[..=end]);
    truncate(sentence, MAX_DESCRIPTION_WIDTH, ellipsis).into_owned()
}

/// A column of the table.
struct Column {
    title: &'static str,
    width: usize,
    fit: Fit,
    cells: Vec<String>,
}

/// How a cell fills its column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Never truncated, so that names can be copied and searched.
    Full,
    TruncateEnd,
    TruncateStart,
    Right,
}

impl Column {
    fn new(title: &'static str, fit: Fit, tools: &[ToolEntry], cell: impl Fn(&ToolEntry) -> String) -> Self {
        let cells: Vec<String> = tools.iter().map(|tool| printable(&cell(tool)).into_owned()).collect();
        let width = cells.iter().map(|cell| width(cell)).chain([title.len()]).max().unwrap_or_default();
        Self { title, width, fit, cells }
    }

    fn fitted(&self, text: &str, ellipsis: &str) -> String {
        let text = match self.fit {
            Fit::Full => text.into(),
            Fit::TruncateEnd => truncate(text, self.width, ellipsis),
            Fit::TruncateStart => truncate_start(text, self.width, ellipsis),
            Fit::Right => return format!("{}{text}", " ".repeat(self.width.saturating_sub(width(text)))),
        };
        pad(&text, self.width)
    }
}

struct Table {
    settings: ConsoleSettings,
    rows: usize,
    columns: Vec<Column>,
}

impl Table {
    fn new(list: &ToolList, settings: ConsoleSettings, screen: Option<usize>) -> Self {
        let tools = &list.tools;
        let dash = settings.symbols.dash;
        let cell = |tool: &ToolEntry, field, value: Option<String>| match value {
            _ if tool.is_unknown(field) => UNKNOWN.to_owned(),
            Some(value) => value,
            None => dash.to_owned(),
        };
        let tokens = |tool: &ToolEntry| {
            cell(tool, ToolField::Description, tool.description_tokens.map(|tokens| tokens.to_string()))
        };
        let names = Column::new("NAME", Fit::Full, tools, |tool| tool.name.clone());
        let mut columns = vec![Column { width: names.width.min(MAX_NAMES_WIDTH), ..names }];
        if tools.iter().any(|tool| tool.version.is_some() || tool.is_unknown(ToolField::Version)) {
            let version = |tool: &ToolEntry| cell(tool, ToolField::Version, tool.version.clone());
            columns.push(Column::new("VERSION", Fit::TruncateEnd, tools, version));
        }
        if tools.iter().any(|tool| tool.status.is_some()) {
            let status = |tool: &ToolEntry| tool.status.clone().unwrap_or_else(|| dash.to_owned());
            columns.push(Column::new("STATUS", Fit::TruncateEnd, tools, status));
        }
        if settings.verbosity == Verbosity::Full {
            let hash = |tool: &ToolEntry| cell(tool, ToolField::Description, tool.description_hash.clone());
            let schema = |tool: &ToolEntry| cell(tool, ToolField::InputSchema, tool.schema_hash.clone());
            columns.push(Column::new("HASH", Fit::TruncateEnd, tools, hash));
            columns.push(Column::new("SCHEMA", Fit::TruncateEnd, tools, schema));
        }
        columns.push(Column::new("TOKENS", Fit::Right, tools, tokens));
        if tools.iter().any(|tool| tool.location.is_some()) {
            let location =
                |tool: &ToolEntry| tool.location.as_ref().map_or_else(|| dash.to_owned(), ToString::to_string);
            columns.push(Column::new("LOCATION", Fit::TruncateStart, tools, location));
        }
        let description = |tool: &ToolEntry| {
            let start = |text: &String| description_start(text, settings.symbols.ellipsis);
            cell(tool, ToolField::Description, tool.description.as_ref().map(start))
        };
        columns.push(Column::new("DESCRIPTION", Fit::TruncateEnd, tools, description));
        let mut table = Self { settings, rows: tools.len(), columns };
        if let Some(screen) = screen {
            table.narrow(screen);
        }
        table
    }

    /// Fits the table to the screen by dropping the least important columns; `--format json` has all.
    fn narrow(&mut self, screen: usize) {
        for column in self.columns.iter_mut().filter(|column| ["VERSION", "STATUS"].contains(&column.title)) {
            column.width = column.width.min(MAX_WORD_WIDTH);
        }
        let full = self.column("DESCRIPTION").map_or(0, |column| column.width);
        self.shrink("DESCRIPTION", MIN_DESCRIPTION_WIDTH, screen);
        for title in ["SCHEMA", "HASH", "VERSION", "STATUS"] {
            self.drop_unless_fits(title, screen);
        }
        self.shrink("LOCATION", MIN_LOCATION_WIDTH, screen);
        for title in ["LOCATION", "TOKENS", "DESCRIPTION"] {
            self.drop_unless_fits(title, screen);
        }
        let spare = screen.saturating_sub(self.width());
        if let Some(description) = self.column("DESCRIPTION") {
            description.width = full.min(description.width + spare);
        }
    }

    fn column(&mut self, title: &str) -> Option<&mut Column> {
        self.columns.iter_mut().find(|column| column.title == title)
    }

    fn shrink(&mut self, title: &str, min_width: usize, screen: usize) {
        let too_wide = self.width().saturating_sub(screen);
        if let Some(column) = self.column(title) {
            column.width = column.width.saturating_sub(too_wide).max(column.width.min(min_width));
        }
    }

    fn drop_unless_fits(&mut self, title: &str, screen: usize) {
        if self.width() > screen {
            self.columns.retain(|column| column.title != title);
        }
    }

    fn width(&self) -> usize {
        self.columns.iter().map(|column| column.width + GAP).sum::<usize>() - GAP
    }

    fn write(&self, out: &mut String) {
        let titles = self.row(|column| column.title);
        let _ = writeln!(out, "{}", self.settings.palette.dim(titles));
        for index in 0..self.rows {
            let _ = writeln!(out, "{}", self.row(|column| &column.cells[index]));
        }
    }

    fn row<'c>(&'c self, cell: impl Fn(&'c Column) -> &'c str) -> String {
        let ellipsis = self.settings.symbols.ellipsis;
        let cells: Vec<String> = self.columns.iter().map(|column| column.fitted(cell(column), ellipsis)).collect();
        cells.join(&" ".repeat(GAP)).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use karat_cases::registry::{Known, Registry, Tool, ToolLocation, Unknown};
    use karat_core::tokenizer::Tokenizer;
    use karat_json::Position;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::style::{Palette, Symbols};

    fn settings(columns: usize) -> ConsoleSettings {
        let palette = Palette { color: false };
        ConsoleSettings { columns, symbols: Symbols::UNICODE, palette, verbosity: Verbosity::Normal }
    }

    fn location(source: &str, line: usize) -> ToolLocation {
        ToolLocation { source: source.to_owned(), position: Some(Position { line, column: 3 }) }
    }

    fn list(tools: impl IntoIterator<Item = Tool>) -> ToolList {
        ToolList::of(&Registry::from_tools(tools), |_| true, Tokenizer::O200kBase)
    }

    fn some_tools() -> ToolList {
        let unknown =
            |reason: &str| Known::Unknown(Unknown { location: location("tools/a.ts", 9), reason: reason.to_owned() });
        list([
            Tool {
                name: "get_weather".to_owned(),
                description: Some("Fetches the weather.".to_owned()).into(),
                version: Some("1.2.0".to_owned()).into(),
                input_schema: Some(json!({"type": "object"})).into(),
                category: Some("read".to_owned()).into(),
                status: Some("deprecated".to_owned()).into(),
                location: Some(location("packages/agent/source/tools/weather/get-weather.tool.ts", 12)),
                ..Tool::default()
            },
            Tool {
                name: "a_tool_with_a_name_that_is_long".to_owned(),
                location: Some(location("tools/a.ts", 3)),
                description: unknown("the template has a hole"),
                version: unknown("it is imported from 'package.json', which is not a module"),
                ..Tool::default()
            },
        ])
    }

    fn text_at(list: &ToolList, columns: usize) -> String {
        tool_list_text(list, settings(columns), Some(columns))
    }

    #[test]
    fn renders_a_table_of_eighty_columns() {
        insta::assert_snapshot!(text_at(&some_tools(), 80), @"
        NAME                              TOKENS  DESCRIPTION
        get_weather                            5  Fetches the weather.
        a_tool_with_a_name_that_is_long  unknown  unknown

        tools/a.ts:9:3: the description of 'a_tool_with_a_name_that_is_long' is
          unknown: the template has a hole
        tools/a.ts:9:3: the version of 'a_tool_with_a_name_that_is_long' is unknown:
          it is imported from 'package.json', which is not a module

        2 tools: 5 tokens in descriptions, 5 in schemas, as far as known
        ");
    }

    #[test]
    fn truncates_nothing_without_a_terminal() {
        insta::assert_snapshot!(tool_list_text(&some_tools(), settings(80), None), @"
        NAME                             VERSION  STATUS       TOKENS  LOCATION                                                      DESCRIPTION
        get_weather                      1.2.0    deprecated        5  packages/agent/source/tools/weather/get-weather.tool.ts:12:3  Fetches the weather.
        a_tool_with_a_name_that_is_long  unknown  —           unknown  tools/a.ts:3:3                                                unknown

        tools/a.ts:9:3: the description of 'a_tool_with_a_name_that_is_long' is
          unknown: the template has a hole
        tools/a.ts:9:3: the version of 'a_tool_with_a_name_that_is_long' is unknown:
          it is imported from 'package.json', which is not a module

        2 tools: 5 tokens in descriptions, 5 in schemas, as far as known
        ");
    }

    #[rstest]
    #[case(40)]
    #[case(60)]
    #[case(80)]
    #[case(120)]
    fn truncates_everything_but_names(#[case] columns: usize) {
        let hostile = Tool {
            name: format!("\u{1b}[31m{}", "名".repeat(10_000)),
            version: Some("9".repeat(10_000)).into(),
            status: Some("\n".repeat(200)).into(),
            location: Some(location(&"x/".repeat(5_000), 1)),
            ..Tool::default()
        };
        let short = || Tool { name: "t".to_owned(), ..Tool::default() };
        for list in [some_tools(), list([hostile, short()]), list([short()])] {
            let text = text_at(&list, columns);
            let is_named = |line: &&str| !list.tools.iter().any(|tool| line.starts_with(&*printable(&tool.name)));
            let widest = text.lines().filter(is_named).map(width).max().unwrap_or_default();
            assert!(widest <= columns.max(MAX_NAMES_WIDTH), "{widest}:\n{text}");
            assert!(list.tools.iter().all(|tool| text.contains(&*printable(&tool.name))), "{text}");
            assert!(text.chars().all(|character| character == '\n' || !character.is_control()), "{text}");
        }
    }

    #[test]
    fn shows_the_first_sentence_and_hashes_on_request() {
        let text = "Cancels an order\nthat has not shipped. Use when the user changes their mind.".to_owned();
        let tool = Tool { name: "t".to_owned(), description: Some(text).into(), ..Tool::default() };
        let list = list([tool]);
        let table = tool_list_text(&list, settings(80), None);
        assert!(table.contains("  Cancels an order that has not shipped.\n"), "{table}");
        let hash = list.tools[0].description_hash.as_deref().expect("a hash");
        assert!(!table.contains(hash), "{table}");
        let full = ConsoleSettings { verbosity: Verbosity::Full, ..settings(80) };
        assert!(tool_list_text(&list, full, None).contains(hash));
    }

    #[test]
    fn leaves_out_empty_columns() {
        let text = text_at(&list([Tool { name: "t".to_owned(), ..Tool::default() }]), 80);
        insta::assert_snapshot!(text, @"
        NAME  TOKENS  DESCRIPTION
        t          —  —

        1 tool: 0 tokens in descriptions, 0 in schemas
        ");
        assert_eq!(text_at(&list([]), 80), "0 tools: 0 tokens in descriptions, 0 in schemas\n");
    }
}

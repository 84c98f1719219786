//! The table of `karat tools`.

use std::fmt::Write as _;

use karat_core::registry::ToolField;
use karat_core::tool_list::{ListedTool, ToolList};

use super::counted;
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{cut, cut_middle, cut_start, pad, printable, width, wrap};

/// What stands between two columns.
const GAP: usize = 2;

/// A name that is cut to less says nothing.
const SHORTEST_NAME: usize = 16;

/// The same of a place.
const SHORTEST_PLACE: usize = 12;

/// A version that is longer is no version.
const LONGEST_VERSION: usize = 12;

/// What stands for a value that shows only when the source is run.
const UNKNOWN: &str = "unknown";

/// Lays out the tools, what is unknown of them, and what they cost.
pub fn tool_list_text(list: &ToolList, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    if settings.verbosity != Verbosity::Quiet && !list.tools.is_empty() {
        Table::new(list, settings).write(&mut out);
        footnotes(list, settings, &mut out);
        out.push('\n');
    }
    let _ = writeln!(out, "{}", wrap(&total(list), settings.columns.max(20)).join("\n"));
    out
}

fn total(list: &ToolList) -> String {
    let totals = list.totals;
    let hides = |tool: &ListedTool| tool.is_unknown(ToolField::Description) || tool.is_unknown(ToolField::InputSchema);
    let limit = if list.tools.iter().any(hides) { ", as far as they are known" } else { "" };
    format!(
        "{}: {} in descriptions, {} in schemas{limit}",
        counted(totals.tools, "tool"),
        counted(totals.description_tokens, "token"),
        totals.schema_tokens
    )
}

/// Says where and why something is unknown.
fn footnotes(list: &ToolList, settings: ConsoleSettings, out: &mut String) {
    let unknown = list.tools.iter().flat_map(|tool| tool.unknown.iter().map(move |unknown| (tool, unknown)));
    for (number, (tool, unknown)) in unknown.enumerate() {
        if number == 0 {
            out.push('\n');
        }
        let line =
            format!("{}: the {} of '{}' is {UNKNOWN}: {}", unknown.place, unknown.field.name(), tool.name, unknown.why);
        let lines = wrap(&printable(&line), settings.columns.saturating_sub(2).max(20));
        let _ = writeln!(out, "{}", lines.join("\n  "));
    }
}

/// A column: what it is about, how wide it is, and how its cells are brought to that width.
struct Column {
    title: &'static str,
    width: usize,
    fit: Fit,
    cells: Vec<String>,
}

/// How a cell fills its column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    CutEnd,
    CutMiddle,
    CutStart,
    Right,
}

impl Column {
    fn of(title: &'static str, fit: Fit, tools: &[ListedTool], cell: impl Fn(&ListedTool) -> String) -> Self {
        let cells: Vec<String> = tools.iter().map(|tool| printable(&cell(tool)).into_owned()).collect();
        let width = cells.iter().map(|cell| width(cell)).chain([title.len()]).max().unwrap_or_default();
        Self { title, width, fit, cells }
    }

    fn fitted(&self, text: &str, ellipsis: &str) -> String {
        let text = match self.fit {
            Fit::CutEnd => cut(text, self.width, ellipsis),
            Fit::CutMiddle => cut_middle(text, self.width, ellipsis),
            Fit::CutStart => cut_start(text, self.width, ellipsis),
            Fit::Right => return format!("{}{text}", " ".repeat(self.width.saturating_sub(width(text)))),
        };
        pad(&text, self.width)
    }
}

struct Table<'t> {
    list: &'t ToolList,
    settings: ConsoleSettings,
    columns: Vec<Column>,
}

impl<'t> Table<'t> {
    fn new(list: &'t ToolList, settings: ConsoleSettings) -> Self {
        let tools = &list.tools;
        let dash = settings.symbols.dash;
        let shown = |tool: &ListedTool, field, value: Option<String>| match value {
            _ if tool.is_unknown(field) => UNKNOWN.to_owned(),
            Some(value) => value,
            None => dash.to_owned(),
        };
        let hash = |tool: &ListedTool| shown(tool, ToolField::Description, tool.description_hash.clone());
        let schema = |tool: &ListedTool| shown(tool, ToolField::InputSchema, tool.schema_hash.clone());
        let tokens = |tool: &ListedTool| {
            shown(tool, ToolField::Description, tool.description_tokens.map(|tokens| tokens.to_string()))
        };
        let mut columns = vec![Column::of("NAME", Fit::CutMiddle, tools, |tool| tool.name.clone())];
        if tools.iter().any(|tool| tool.version.is_some() || tool.is_unknown(ToolField::Version)) {
            let version = |tool: &ListedTool| shown(tool, ToolField::Version, tool.version.clone());
            let column = Column::of("VERSION", Fit::CutEnd, tools, version);
            columns.push(Column { width: column.width.min(LONGEST_VERSION), ..column });
        }
        columns.push(Column::of("DESCRIPTION", Fit::CutEnd, tools, hash));
        columns.push(Column::of("SCHEMA", Fit::CutEnd, tools, schema));
        columns.push(Column::of("TOKENS", Fit::Right, tools, tokens));
        if tools.iter().any(|tool| tool.place.is_some()) {
            let place = |tool: &ListedTool| tool.place.as_ref().map_or_else(|| dash.to_owned(), ToString::to_string);
            columns.push(Column::of("READ IN", Fit::CutStart, tools, place));
        }
        let mut table = Self { list, settings, columns };
        table.narrow();
        table
    }

    /// Brings the table to the screen's width: places and names share what the others leave them.
    fn narrow(&mut self) {
        // What a very narrow screen has no room for is in `--format json`.
        for title in ["READ IN", "SCHEMA", "VERSION"] {
            let least: usize = self.columns.iter().map(least_width).sum();
            if least + GAP * (self.columns.len() - 1) > self.settings.columns {
                self.columns.retain(|column| column.title != title);
            }
        }
        let fixed: usize = self.columns.iter().filter(|column| !is_flexible(column)).map(|column| column.width).sum();
        let room = self.settings.columns.saturating_sub(fixed + GAP * (self.columns.len() - 1));
        let place = self.columns.iter().find(|column| column.fit == Fit::CutStart).map_or(0, |column| column.width);
        // A place says much in its last characters, a name in all of them.
        let for_place =
            place.min((room / 3).max(SHORTEST_PLACE)).max(room.saturating_sub(self.columns[0].width).min(place));
        for column in &mut self.columns {
            match column.fit {
                Fit::CutMiddle => column.width = column.width.min(room.saturating_sub(for_place)),
                Fit::CutStart => column.width = for_place,
                Fit::CutEnd | Fit::Right => {}
            }
        }
    }

    fn write(&self, out: &mut String) {
        let palette = self.settings.palette;
        let titles = self.row(|column| column.title);
        let _ = writeln!(out, "{}", palette.dim(titles));
        for (index, tool) in self.list.tools.iter().enumerate() {
            let _ = writeln!(out, "{}", self.row(|column| &column.cells[index]));
            let kind: Vec<&str> = tool.category.iter().chain(&tool.status).map(String::as_str).collect();
            if !kind.is_empty() {
                let kind = format!("  {}", printable(&kind.join(", ")));
                let kind = cut(&kind, self.settings.columns, self.settings.symbols.ellipsis);
                let _ = writeln!(out, "{}", palette.dim(kind));
            }
        }
    }

    fn row<'c>(&'c self, cell: impl Fn(&'c Column) -> &'c str) -> String {
        let ellipsis = self.settings.symbols.ellipsis;
        let cells: Vec<String> = self.columns.iter().map(|column| column.fitted(cell(column), ellipsis)).collect();
        cells.join(&" ".repeat(GAP)).trim_end().to_owned()
    }
}

fn is_flexible(column: &Column) -> bool {
    matches!(column.fit, Fit::CutMiddle | Fit::CutStart)
}

fn least_width(column: &Column) -> usize {
    match column.fit {
        Fit::CutMiddle => column.width.min(SHORTEST_NAME),
        Fit::CutStart => column.width.min(SHORTEST_PLACE),
        Fit::CutEnd | Fit::Right => column.width,
    }
}

#[cfg(test)]
mod tests {
    use karat_core::registry::{Registry, Tool, ToolPlace, Unknown};
    use karat_core::source::Position;
    use karat_core::tokenizer::Tokenizer;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::style::{Palette, Symbols};

    fn settings(columns: usize) -> ConsoleSettings {
        let palette = Palette { color: false };
        ConsoleSettings { columns, symbols: Symbols::UNICODE, palette, verbosity: Verbosity::Normal }
    }

    fn place(source: &str, line: usize) -> ToolPlace {
        ToolPlace { source: source.to_owned(), position: Some(Position { line, column: 3 }) }
    }

    fn list(tools: impl IntoIterator<Item = Tool>) -> ToolList {
        ToolList::of(&Registry::of(tools), |_| true, Tokenizer::O200kBase)
    }

    fn some_tools() -> ToolList {
        let unknown = |field, why: &str| Unknown { field, place: place("tools/a.ts", 9), why: why.to_owned() };
        list([
            Tool {
                name: "get_weather".to_owned(),
                description: Some("Fetches the weather.".to_owned()),
                version: Some("1.2.0".to_owned()),
                input_schema: Some(json!({"type": "object"})),
                category: Some("read".to_owned()),
                status: Some("deprecated".to_owned()),
                place: Some(place("packages/agent/source/tools/weather/get-weather.tool.ts", 12)),
                ..Tool::default()
            },
            Tool {
                name: "a_tool_with_a_name_that_no_one_could_possibly_type".to_owned(),
                place: Some(place("tools/a.ts", 3)),
                unknown: vec![
                    unknown(ToolField::Description, "the template has a hole"),
                    unknown(ToolField::Version, "it is imported from 'package.json', which is not a module"),
                ],
                ..Tool::default()
            },
        ])
    }

    #[test]
    fn a_table_of_eighty_columns() {
        insta::assert_snapshot!(tool_list_text(&some_tools(), settings(80)), @"
        NAME                  VERSION  DESCRIPTION   SCHEMA         TOKENS  READ IN
        get_weather           1.2.0    a0a90d49fc7b  a2c799262a3c        5  …ool.ts:12:3
          read, deprecated
        a_tool_wit…ibly_type  unknown  unknown       —             unknown  …ls/a.ts:3:3

        tools/a.ts:9:3: the description of
          'a_tool_with_a_name_that_no_one_could_possibly_type' is unknown: the template
          has a hole
        tools/a.ts:9:3: the version of
          'a_tool_with_a_name_that_no_one_could_possibly_type' is unknown: it is
          imported from 'package.json', which is not a module

        2 tools: 5 tokens in descriptions, 5 in schemas, as far as they are known
        ");
    }

    #[rstest]
    #[case(40)]
    #[case(60)]
    #[case(80)]
    #[case(120)]
    fn no_line_is_wider_than_the_screen(#[case] columns: usize) {
        let hostile = Tool {
            name: format!("\u{1b}[31m{}", "名".repeat(10_000)),
            version: Some("9".repeat(10_000)),
            category: Some("\n".repeat(200)),
            place: Some(place(&"x/".repeat(5_000), 1)),
            ..Tool::default()
        };
        for list in [some_tools(), list([hostile]), list([Tool { name: "t".to_owned(), ..Tool::default() }])] {
            let text = tool_list_text(&list, settings(columns));
            let widest = text.lines().map(width).max().unwrap_or_default();
            assert!(widest <= columns, "{widest}:\n{text}");
            assert!(text.chars().all(|character| character == '\n' || !character.is_control()), "{text}");
        }
    }

    #[test]
    fn what_nobody_says_takes_no_column() {
        let text = tool_list_text(&list([Tool { name: "t".to_owned(), ..Tool::default() }]), settings(80));
        insta::assert_snapshot!(text, @"
        NAME  DESCRIPTION  SCHEMA  TOKENS
        t     —            —            —

        1 tool: 0 tokens in descriptions, 0 in schemas
        ");
        assert_eq!(tool_list_text(&list([]), settings(80)), "0 tools: 0 tokens in descriptions, 0 in schemas\n");
    }
}

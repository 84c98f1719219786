//! Writes the code of an adopted function.

use ruff_python_ast::StmtFunctionDef;
use ruff_text_size::{Ranged as _, TextRange};

use super::framework::{Evaluator, Form, Framework};
use super::imports::Imported;
use super::source_item::{Edit, ImportKind, SourceItem};
use crate::function::ADOPTED_MARK;

const COMMON: &str = include_str!("stand_ins/common.py");
const BRAINTRUST: &str = include_str!("stand_ins/braintrust.py");
const DEEPEVAL: &str = include_str!("stand_ins/deepeval.py");
const LANGFUSE: &str = include_str!("stand_ins/langfuse.py");
const LANGSMITH: &str = include_str!("stand_ins/langsmith.py");
const MLFLOW: &str = include_str!("stand_ins/mlflow.py");
const OPENAI: &str = include_str!("stand_ins/openai.py");
const PHOENIX: &str = include_str!("stand_ins/phoenix.py");
const PROMPTFOO: &str = include_str!("stand_ins/promptfoo.py");

/// What the code of an adopted function consists of.
pub(super) struct CodeGenerator<'p, 'a> {
    pub(super) evaluator: &'p Evaluator<'a>,
    /// The name of the eval function.
    pub(super) name: &'p str,
    pub(super) items: &'p [SourceItem<'a>],
    /// The text of the evaluator's file.
    pub(super) text: &'p str,
    /// Whether the evaluator must be in a module of its own.
    pub(super) is_split: bool,
}

/// The code of an adopted function.
pub(super) struct GeneratedCode {
    pub(super) main: String,
    pub(super) helper: Option<String>,
}

const SETTINGS: &str = "KARAT_RETURNS = \"flexible\"\nKARAT_THRESHOLD = 0.5\n";

/// Functions of the stand-ins that calls use.
const STAND_IN_FUNCTIONS: [&str; 14] = [
    "_Example",
    "_Fields",
    "_Run",
    "_Trace",
    "_await_result",
    "_input",
    "_item",
    "_measure",
    "_options",
    "_output",
    "_promptfoo_context",
    "_input_fields",
    "_output_fields",
    "_sample",
];

impl CodeGenerator<'_, '_> {
    /// Returns the code, or the parameters that cannot be filled.
    pub(super) fn generate(&self) -> Result<GeneratedCode, Vec<String>> {
        let (framework, items) = (self.evaluator.framework, self.items);
        let source_name = self.evaluator.name();
        let title = format!("\"\"\"Adopted from {source_name}, {}.\"\"\"\n", framework.title());
        let body = format!("{}{ADOPTED_MARK}\n{}", stand_ins(framework, items), statements(items, self.text));
        let called = if self.is_split { "_evaluator" } else { source_name };
        let call = self.call(called)?;
        let value = if self.evaluator.is_async() { format!("_await_result({call})") } else { call };
        let function = format!("def {}(trace, context):\n    return _verdict({value})\n", self.name);
        let head = format!("{title}\n{}", imports(items, ImportKind::Future));
        if !self.is_split {
            let main = format!("{head}{SETTINGS}\n\n{body}\n\n{function}");
            return Ok(GeneratedCode { main, helper: None });
        }
        let module = helper_name(self.name);
        let is_called = |name: &&&str| value.contains(&format!("{name}("));
        let used: String = STAND_IN_FUNCTIONS.iter().filter(is_called).flat_map(|name| [", ", name]).collect();
        let import = format!("from {module} import _verdict{used}\nfrom {module} import {source_name} as _evaluator\n");
        let main = format!("{title}\n{import}\n{SETTINGS}\n\n{function}");
        Ok(GeneratedCode { main, helper: Some(format!("{head}{SETTINGS}\n\n{body}")) })
    }

    /// Returns the call of the evaluator.
    fn call(&self, name: &str) -> Result<String, Vec<String>> {
        let framework = self.evaluator.framework;
        match (&self.evaluator.form, framework) {
            (Form::Function(function), _) => {
                arguments(function, framework, false).map(|list| format!("{name}({list})"))
            }
            (Form::Class(..), _) => {
                let constructor = self.evaluator.constructor();
                let options: String = constructor.names().flat_map(|option| [", \"", option, "\""]).collect();
                let options = if options.is_empty() { options } else { format!("**_options(context{options})") };
                let instance = format!("{name}({options})");
                if framework == Framework::Deepeval {
                    return Ok(format!("_measure({instance}, trace, context)"));
                }
                let method = framework.scoring_method();
                let list = match self.evaluator.method(method) {
                    Some(function) => arguments(function, framework, true)?,
                    None => String::new(),
                };
                Ok(format!("{instance}.{method}({list})"))
            }
        }
    }
}

/// Returns the code of a helper module.
pub(super) fn helper_code(framework: Framework, items: &[SourceItem<'_>], text: &str) -> String {
    let needs_stand_ins = items.iter().any(|item| match item {
        SourceItem::Import(kind, _) => *kind == ImportKind::StandIn,
        SourceItem::Statement(_, edits) => edits.iter().any(|edit| edit.is_stand_in),
    });
    let stand_ins = if needs_stand_ins { stand_ins(framework, items) } else { String::new() };
    format!("{}{stand_ins}{}", imports(items, ImportKind::Future), statements(items, text))
}

/// Returns the stand-ins of a framework, and assignments for what is imported from it.
fn stand_ins(framework: Framework, items: &[SourceItem<'_>]) -> String {
    let assignments = imports(items, ImportKind::StandIn);
    let gap = if assignments.is_empty() { "" } else { "\n" };
    let parts = [COMMON, stand_in(framework)].map(str::trim_end).into_iter().filter(|part| !part.is_empty());
    let parts: String = parts.flat_map(|part| [part, "\n\n\n"]).collect();
    format!("{parts}{assignments}{gap}")
}

/// Returns the import statements of one kind.
fn imports(items: &[SourceItem<'_>], wanted: ImportKind) -> String {
    let statement = |item: &SourceItem<'_>| match item {
        SourceItem::Import(kind, statement) if *kind == wanted && !statement.is_empty() => {
            Some(format!("{statement}\n"))
        }
        _ => None,
    };
    items.iter().filter_map(statement).collect()
}

/// Returns the statements of a file that are copied.
fn statements(items: &[SourceItem<'_>], text: &str) -> String {
    let mut code = imports(items, ImportKind::Module);
    let mut end: Option<usize> = None;
    for item in items {
        let SourceItem::Statement(stmt, edits) = item else { continue };
        let gap = end.and_then(|end| text.get(end..stmt.start().to_usize()));
        if gap.is_some_and(|gap| gap.matches('\n').count() > 1) || (gap.is_none() && !code.is_empty()) {
            code.push_str("\n\n");
        }
        let start = stmt.start().to_usize();
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let indentation = &text[line_start..start];
        if !indentation.is_empty() && indentation.trim().is_empty() {
            // It was inside of a function. Strings over several items must not change, so it is not indented anew.
            code.push_str("if True:\n");
            code.push_str(indentation);
        }
        code.push_str(edited(text, stmt.range(), edits).trim_end());
        code.push('\n');
        end = Some(stmt.end().to_usize());
    }
    code
}

/// Returns a part of a text, with edits.
fn edited(text: &str, range: TextRange, edits: &[Edit]) -> String {
    let mut out = String::new();
    let mut from = range.start();
    for edit in edits {
        out.push_str(&text[TextRange::new(from, edit.range.start())]);
        out.push_str(&edit.text);
        from = edit.range.end();
    }
    out.push_str(&text[TextRange::new(from, range.end())]);
    out
}

/// Returns the statement in place of an import from the framework; `None` if it has no stand-in.
pub(super) fn stand_in_for(framework: Framework, import: &Imported<'_>) -> Option<String> {
    let source = stand_in(framework);
    let bound = import.bound();
    match import.member {
        None => Some(format!("{bound} = _Package()")),
        Some(member) if source.contains(&format!("{member}=")) || defines(source, member) => {
            Some(if bound == member { String::new() } else { format!("{bound} = {member}") })
        }
        Some(_) => None,
    }
}

/// Returns the arguments of a call, or the parameters that cannot be filled.
fn arguments(function: &StmtFunctionDef, framework: Framework, is_method: bool) -> Result<String, Vec<String>> {
    let known = framework.arguments();
    let parameters = &function.parameters;
    let mut list = Vec::new();
    let mut missing = Vec::new();
    let skipped = usize::from(is_method);
    let positional: Vec<&str> =
        parameters.posonlyargs.iter().chain(&parameters.args).map(|parameter| parameter.name().as_str()).collect();
    for (index, parameter) in parameters.iter_non_variadic_params().enumerate().skip(skipped) {
        let name = parameter.name().as_str();
        let is_positional = index < positional.len();
        let by_name = known.iter().find(|(known, _)| *known == name);
        // promptfoo passes by position; Phoenix passes the output to the only parameter.
        let by_position = match framework {
            Framework::Promptfoo | Framework::Openai if is_positional => known.get(index - skipped),
            Framework::Phoenix if positional.len() == 1 + skipped => known.iter().find(|(known, _)| *known == "output"),
            _ => None,
        };
        match by_name.or(by_position) {
            Some((_, value)) if index < parameters.posonlyargs.len() || (by_name.is_none() && is_positional) => {
                list.push((*value).to_owned());
            }
            Some((_, value)) => list.push(format!("{name}={value}")),
            None if parameter.default.is_none() => {
                missing.push(format!("its parameter '{name}' is unknown to {framework}"));
            }
            None => {}
        }
    }
    if missing.is_empty() { Ok(list.join(", ")) } else { Err(missing) }
}

fn stand_in(framework: Framework) -> &'static str {
    match framework {
        Framework::Promptfoo => PROMPTFOO,
        Framework::Braintrust => BRAINTRUST,
        Framework::Langfuse => LANGFUSE,
        Framework::Langsmith => LANGSMITH,
        Framework::Phoenix => PHOENIX,
        Framework::Mlflow => MLFLOW,
        Framework::Deepeval => DEEPEVAL,
        Framework::Openai => OPENAI,
        Framework::Plain => "",
    }
}

/// Whether a stand-in defines a name.
fn defines(source: &str, name: &str) -> bool {
    let starts = [format!("class {name}"), format!("def {name}("), format!("{name} = ")];
    source.lines().any(|item| starts.iter().any(|start| item.starts_with(start.as_str())))
}

/// Returns the name of the helper module of an eval function.
pub fn helper_name(name: &str) -> String {
    format!("_{}", name.strip_prefix("eval_").unwrap_or(name))
}

//! Writes the code of an adopted function.

use ruff_python_ast::{Stmt, StmtFunctionDef};
use ruff_text_size::Ranged as _;

use super::framework::{Evaluator, Form, Framework, method_of};
use super::imports::Imported;
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

/// A part of the code to copy.
pub(super) enum SourceItem<'a> {
    Statement(&'a Stmt),
    Import { import: Imported<'a>, is_stand_in: bool },
}

/// Generates the code of an adopted function.
pub(super) struct CodeGenerator<'p, 'a> {
    pub(super) evaluator: &'p Evaluator<'a>,
    /// The name of the eval function.
    pub(super) name: &'p str,
    pub(super) items: &'p [SourceItem<'a>],
    /// The text of the file.
    pub(super) text: &'p str,
    /// Whether the evaluator must be in a module of its own.
    pub(super) is_split: bool,
}

/// The code of an adopted function.
pub(super) struct GeneratedCode {
    pub(super) main: String,
    pub(super) helper: Option<String>,
    pub(super) notes: Vec<String>,
}

const SETTINGS: &str = "KARAT_RETURNS = \"flexible\"\nKARAT_THRESHOLD = 0.5\n";

/// Functions of the stand-ins that generated calls use.
const STAND_IN_FUNCTIONS: [&str; 12] = [
    "_Example",
    "_Fields",
    "_Run",
    "_await_result",
    "_input",
    "_item",
    "_measure",
    "_output",
    "_promptfoo_context",
    "_raw_input",
    "_raw_output",
    "_sample",
];

impl CodeGenerator<'_, '_> {
    /// Generates the code. Returns an error with the parameters that cannot be filled.
    pub(super) fn generate(&self) -> Result<GeneratedCode, Vec<String>> {
        let framework = self.evaluator.framework;
        let source_name = self.evaluator.name();
        let title = format!("\"\"\"Adopted from {source_name}, an evaluator of {framework}.\"\"\"\n");
        let future: String = self.imports(|import, _| import.module == "__future__");
        let (stand_ins, notes) = self.stand_ins();
        let body = format!(
            "{}\n\n\n{}\n\n\n{stand_ins}{ADOPTED_MARK}\n{}",
            COMMON.trim_end(),
            stand_in(framework).trim_end(),
            self.evaluator_code()
        );
        let called = if self.is_split { "_evaluator" } else { source_name };
        let call = self.call(called)?;
        let value = if self.evaluator.is_async() { format!("_await_result({call})") } else { call.clone() };
        let function = format!("def {}(trace, context):\n    return _verdict({value})\n", self.name);
        let head = format!("{title}\n{future}");
        if !self.is_split {
            let main = format!("{head}{SETTINGS}\n\n{body}\n\n{function}");
            return Ok(GeneratedCode { main, helper: None, notes });
        }
        let module = helper_name(self.name);
        let used: Vec<String> =
            STAND_IN_FUNCTIONS.iter().filter(|name| value.contains(*name)).map(|name| format!(", {name}")).collect();
        let used = used.concat();
        let import = format!("from {module} import _verdict{used}\nfrom {module} import {source_name} as _evaluator\n");
        let main = format!("{title}\n{import}\n{SETTINGS}\n\n{function}");
        Ok(GeneratedCode { main, helper: Some(format!("{head}{SETTINGS}\n\n{body}")), notes })
    }

    /// Returns the import statements that match a predicate.
    fn imports(&self, matches: impl Fn(&Imported<'_>, bool) -> bool) -> String {
        let statement = |item: &SourceItem<'_>| match item {
            SourceItem::Import { import, is_stand_in } if matches(import, *is_stand_in) => {
                Some(format!("{}\n", import.statement()))
            }
            _ => None,
        };
        self.items.iter().filter_map(statement).collect()
    }

    /// Returns assignments for names imported from the framework, and notes on names without a stand-in.
    fn stand_ins(&self) -> (String, Vec<String>) {
        let source = stand_in(self.evaluator.framework);
        let (mut lines, mut notes) = (String::new(), Vec::new());
        for item in self.items {
            let SourceItem::Import { import, is_stand_in: true } = item else { continue };
            let bound = import.bound();
            match import.member {
                None => lines.extend([bound, " = _Package()\n"]),
                Some(member) if source.contains(&format!("{member}=")) || defines(source, member) => {
                    if bound != member {
                        lines.extend([bound, " = ", member, "\n"]);
                    }
                }
                Some(member) => {
                    lines.extend([bound, " = _Package()\n"]);
                    notes.push(format!(
                        "'{member}' of {} has no stand-in: it can only be used in annotations",
                        import.module
                    ));
                }
            }
        }
        if !lines.is_empty() {
            lines.push('\n');
        }
        (lines, notes)
    }

    /// Returns the statements of the evaluator and of everything it refers to.
    fn evaluator_code(&self) -> String {
        let mut code = self.imports(|import, is_stand_in| !is_stand_in && import.module != "__future__");
        let mut end: Option<usize> = None;
        for item in self.items {
            let SourceItem::Statement(stmt) = item else { continue };
            let gap = end.and_then(|end| self.text.get(end..stmt.start().to_usize()));
            if gap.is_some_and(|gap| gap.matches('\n').count() > 1) || (gap.is_none() && !code.is_empty()) {
                code.push_str("\n\n");
            }
            code.push_str(self.text[stmt.range()].trim_end());
            code.push('\n');
            end = Some(stmt.end().to_usize());
        }
        code
    }

    /// Returns the call of the evaluator.
    fn call(&self, name: &str) -> Result<String, Vec<String>> {
        let framework = self.evaluator.framework;
        match (&self.evaluator.form, framework) {
            (Form::Function(function), _) => {
                arguments(function, framework, false).map(|list| format!("{name}({list})"))
            }
            (Form::Class(_), Framework::Deepeval) => Ok(format!("_measure({name}(), trace, context)")),
            (Form::Class(class), _) => {
                let method = framework.scoring_method();
                let list = match method_of(class, method) {
                    Some(function) => arguments(function, framework, true)?,
                    None => String::new(),
                };
                Ok(format!("{name}().{method}({list})"))
            }
        }
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
    }
}

/// Whether a stand-in defines a name.
fn defines(source: &str, name: &str) -> bool {
    let starts = [format!("class {name}"), format!("def {name}("), format!("{name} = ")];
    source.lines().any(|line| starts.iter().any(|start| line.starts_with(start.as_str())))
}

/// Returns the name of the helper module of an eval function.
pub fn helper_name(name: &str) -> String {
    format!("_{}", name.strip_prefix("eval_").unwrap_or(name))
}

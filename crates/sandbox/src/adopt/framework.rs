//! The supported frameworks, and the detection of their evaluators.

use std::collections::BTreeSet;
use std::fmt;

use ruff_python_ast::{Decorator, Expr, Stmt, StmtClassDef, StmtFunctionDef};
use schemars::JsonSchema;
use serde::Serialize;

use crate::modules::root;

/// A framework whose evaluators can be adopted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Framework {
    Promptfoo,
    /// Braintrust and autoevals.
    Braintrust,
    Langfuse,
    /// `LangSmith` and openevals.
    Langsmith,
    Phoenix,
    Mlflow,
    Deepeval,
    /// `OpenAI` graders in Python.
    Openai,
}

impl Framework {
    const ALL: [Self; 8] = [
        Self::Promptfoo,
        Self::Braintrust,
        Self::Langfuse,
        Self::Langsmith,
        Self::Phoenix,
        Self::Mlflow,
        Self::Deepeval,
        Self::Openai,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Promptfoo => "promptfoo",
            Self::Braintrust => "Braintrust",
            Self::Langfuse => "Langfuse",
            Self::Langsmith => "LangSmith",
            Self::Phoenix => "Phoenix",
            Self::Mlflow => "MLflow",
            Self::Deepeval => "DeepEval",
            Self::Openai => "OpenAI graders",
        }
    }

    /// Returns the packages of the framework.
    pub(super) fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Promptfoo => &["promptfoo"],
            Self::Braintrust => &["autoevals", "braintrust", "braintrust_core"],
            Self::Langfuse => &["langfuse"],
            Self::Langsmith => &["langsmith", "openevals"],
            Self::Phoenix => &["phoenix"],
            Self::Mlflow => &["mlflow"],
            Self::Deepeval => &["deepeval"],
            Self::Openai => &[],
        }
    }

    /// Returns the parameters that evaluators may declare, each with the expression that karat passes. Positional
    /// arguments follow this order.
    pub(super) fn arguments(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Promptfoo => &[("output", "_output(trace)"), ("context", "_promptfoo_context(trace, context)")],
            Self::Braintrust => &[
                ("input", "_input(trace)"),
                ("output", "_output(trace)"),
                ("expected", "context.reference"),
                ("metadata", "dict(context.params)"),
            ],
            Self::Langfuse => &[
                ("input", "_input(trace)"),
                ("output", "_output(trace)"),
                ("expected_output", "context.reference"),
                ("metadata", "dict(context.params)"),
            ],
            Self::Langsmith => &[
                ("inputs", "_Fields(_raw_input(trace), context.params)"),
                ("outputs", "_Fields(_raw_output(trace))"),
                ("reference_outputs", "_Fields(context.reference)"),
                ("run", "_Run(trace, context)"),
                ("example", "_Example(trace, context)"),
            ],
            Self::Phoenix => &[
                ("input", "_Fields(_raw_input(trace), context.params)"),
                ("output", "_output(trace)"),
                ("expected", "_Fields(context.reference)"),
                ("reference", "_Fields(context.reference)"),
                ("metadata", "dict(context.params)"),
            ],
            Self::Mlflow => &[
                ("inputs", "_Fields(_raw_input(trace), context.params)"),
                ("outputs", "_output(trace)"),
                ("expectations", "_Fields(context.reference)"),
            ],
            Self::Openai => &[("sample", "_sample(trace)"), ("item", "_item(trace, context)")],
            Self::Deepeval => &[],
        }
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Returns the frameworks that a file imports.
pub(super) fn imported_frameworks(body: &[Stmt]) -> BTreeSet<Framework> {
    let mut modules: BTreeSet<&str> = BTreeSet::new();
    for stmt in body {
        match stmt {
            Stmt::Import(import) => modules.extend(import.names.iter().map(|alias| root(&alias.name))),
            Stmt::ImportFrom(import) => modules.extend(import.module.iter().map(|module| root(module))),
            _ => {}
        }
    }
    let is_imported = |framework: &Framework| framework.modules().iter().any(|module| modules.contains(*module));
    Framework::ALL.into_iter().filter(is_imported).collect()
}

/// An evaluator of a framework.
pub(super) struct Evaluator<'a> {
    pub(super) framework: Framework,
    pub(super) form: Form<'a>,
}

pub(super) enum Form<'a> {
    Function(&'a StmtFunctionDef),
    /// A class with a scoring method.
    Class(&'a StmtClassDef),
}

impl<'a> Evaluator<'a> {
    /// Recognises an evaluator. `is_named` relaxes the checks for a function that the user named.
    pub(super) fn recognise(stmt: &'a Stmt, imported: &BTreeSet<Framework>, is_named: bool) -> Option<Self> {
        match stmt {
            Stmt::FunctionDef(function) => {
                let framework = framework_of_function(function, imported, is_named)?;
                Some(Self { framework, form: Form::Function(function) })
            }
            Stmt::ClassDef(class) => {
                let framework = framework_of_class(class)?;
                Some(Self { framework, form: Form::Class(class) })
            }
            _ => None,
        }
    }

    pub(super) fn name(&self) -> &'a str {
        match self.form {
            Form::Function(function) => &function.name,
            Form::Class(class) => &class.name,
        }
    }

    /// Returns the differences from the framework.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = match self.framework {
            Framework::Promptfoo => vec!["a number passes above 0, as in promptfoo without a threshold".to_owned()],
            Framework::Deepeval => vec!["it passes if is_successful() returns True".to_owned()],
            _ => vec!["a number of at least 0.5 passes: change KARAT_THRESHOLD in the file".to_owned()],
        };
        let reads_reference = match &self.form {
            Form::Function(function) => function.parameters.iter().any(|parameter| {
                ["expected", "expected_output", "reference", "reference_outputs", "expectations", "example", "item"]
                    .contains(&parameter.name().as_str())
            }),
            Form::Class(_) => true,
        };
        if self.is_async() {
            notes.push("it is async: it must not await external calls".to_owned());
        }
        if reads_reference {
            notes.push("the expected value is the 'reference' of the entry in 'expect.evals'".to_owned());
        }
        notes
    }

    /// Whether the evaluator is a coroutine.
    pub(super) fn is_async(&self) -> bool {
        matches!(self.form, Form::Function(function) if function.is_async)
    }

    /// Returns the reasons in the signature why the evaluator cannot run.
    pub(super) fn obstacles(&self) -> Vec<String> {
        let mut obstacles = Vec::new();
        match &self.form {
            Form::Class(class) => {
                let method = self.framework.scoring_method();
                if method_of(class, method).is_none() {
                    obstacles.push(format!("its class has no method '{method}' of its own"));
                }
            }
            Form::Function(_) => {}
        }
        obstacles
    }
}

impl Framework {
    /// Returns the scoring method of an evaluator's class.
    pub(super) fn scoring_method(self) -> &'static str {
        match self {
            Self::Deepeval => "measure",
            Self::Braintrust => "_run_eval_sync",
            Self::Phoenix => "evaluate",
            _ => "__call__",
        }
    }
}

pub(super) fn method_of<'a>(class: &'a StmtClassDef, name: &str) -> Option<&'a StmtFunctionDef> {
    class.body.iter().filter_map(Stmt::as_function_def_stmt).find(|method| method.name == *name)
}

fn framework_of_class(class: &StmtClassDef) -> Option<Framework> {
    let mut bases = class.arguments.iter().flat_map(|arguments| arguments.args.iter()).filter_map(last_name);
    bases.find_map(|base| match base {
        "BaseMetric" => Some(Framework::Deepeval),
        "Scorer" | "SyncScorer" | "ScorerWithPartial" => Some(Framework::Braintrust),
        "CodeEvaluator" | "Evaluator" => Some(Framework::Phoenix),
        _ => None,
    })
}

fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        Expr::Call(call) => last_name(&call.func),
        _ => None,
    }
}

fn framework_of_function(
    function: &StmtFunctionDef,
    imported: &BTreeSet<Framework>,
    is_named: bool,
) -> Option<Framework> {
    let decorators: Vec<&str> =
        function.decorator_list.iter().filter_map(|Decorator { expression, .. }| last_name(expression)).collect();
    if decorators.contains(&"scorer") {
        return Some(Framework::Mlflow);
    }
    if decorators.contains(&"create_evaluator") {
        return Some(Framework::Phoenix);
    }
    let names: Vec<&str> = function.parameters.iter().map(|parameter| parameter.name().as_str()).collect();
    let has = |name: &str| names.contains(&name);
    if function.name == *"get_assert" || (names.len() == 2 && names[1] == "context") {
        return Some(Framework::Promptfoo);
    }
    if names.len() == 2 && has("sample") && has("item") {
        return Some(Framework::Openai);
    }
    let by_name = if has("reference_outputs") || (has("run") && has("example")) {
        Some(Framework::Langsmith)
    } else if has("expectations") {
        Some(Framework::Mlflow)
    } else if has("expected_output") && has("output") {
        Some(Framework::Langfuse)
    } else if has("expected") && has("output") {
        Some(Framework::Braintrust)
    } else {
        None
    };
    // Several frameworks use the same names, so the imports of the file decide.
    let fits = |framework: &Framework| can_fill_parameters(*framework, function);
    let by_import = || imported.iter().copied().find(fits);
    let takes_output = has("output") || has("outputs");
    match by_name {
        Some(framework) if fits(&framework) && (imported.is_empty() || imported.contains(&framework)) => {
            Some(framework)
        }
        _ if takes_output || is_named => by_import().or(by_name).or_else(|| {
            // autoevals, Langfuse and others accept a plain function of the output.
            (is_named && takes_output).then(|| Framework::ALL.into_iter().find(fits)).flatten()
        }),
        _ => None,
    }
}

/// Whether a framework can fill the parameters of a function that have no default.
fn can_fill_parameters(framework: Framework, function: &StmtFunctionDef) -> bool {
    let known = framework.arguments();
    let mut required = function.parameters.iter_non_variadic_params().filter(|parameter| parameter.default.is_none());
    required.all(|parameter| known.iter().any(|(name, _)| parameter.name() == *name))
}

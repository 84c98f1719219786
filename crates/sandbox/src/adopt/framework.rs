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
    /// A function of the output and the expected value, which belongs to no framework.
    Plain,
}

/// Names of the output in plain functions.
const PREDICTIONS: [&str; 5] = ["prediction", "response", "answer", "actual", "output"];

/// Names of the expected value in plain functions.
const EXPECTATIONS: [&str; 5] = ["expected", "reference", "gold", "ground_truth", "target"];

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
            Self::Plain => "plain Python",
        }
    }

    /// Returns what an evaluator is called: `an evaluator of Langfuse`.
    pub fn title(self) -> String {
        match self {
            Self::Plain => "a plain function".to_owned(),
            _ => format!("an evaluator of {self}"),
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
            Self::Openai | Self::Plain => &[],
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
                ("trace", "_Trace(trace)"),
            ],
            Self::Langfuse => &[
                ("input", "_input(trace)"),
                ("output", "_output(trace)"),
                ("expected_output", "context.reference"),
                ("metadata", "dict(context.params)"),
            ],
            Self::Langsmith => &[
                ("inputs", "_input_fields(trace, context)"),
                ("outputs", "_output_fields(trace)"),
                ("reference_outputs", "_Fields(context.reference)"),
                ("run", "_Run(trace, context)"),
                ("example", "_Example(trace, context)"),
            ],
            Self::Phoenix => &[
                ("input", "_input_fields(trace, context)"),
                ("output", "_output(trace)"),
                ("expected", "_Fields(context.reference)"),
                ("reference", "_Fields(context.reference)"),
                ("metadata", "dict(context.params)"),
                ("example", "_Example(trace, context)"),
            ],
            Self::Mlflow => &[
                ("inputs", "_input_fields(trace, context)"),
                ("outputs", "_output(trace)"),
                ("expectations", "_Fields(context.reference)"),
            ],
            Self::Openai => &[("sample", "_sample(trace)"), ("item", "_item(trace, context)")],
            Self::Plain => &[
                ("prediction", "_output(trace)"),
                ("response", "_output(trace)"),
                ("answer", "_output(trace)"),
                ("actual", "_output(trace)"),
                ("output", "_output(trace)"),
                ("expected", "context.reference"),
                ("reference", "context.reference"),
                ("gold", "context.reference"),
                ("ground_truth", "context.reference"),
                ("target", "context.reference"),
            ],
            Self::Deepeval => &[],
        }
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Returns the frameworks that statements import.
pub(super) fn imported_frameworks<'a>(statements: impl IntoIterator<Item = &'a Stmt>) -> BTreeSet<Framework> {
    let mut modules: BTreeSet<&str> = BTreeSet::new();
    for stmt in statements {
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
    /// A class with a method that scores, and its base classes in the same file.
    Class(&'a StmtClassDef, Vec<&'a StmtClassDef>),
}

/// The parameters of a class's constructor.
#[derive(Default)]
pub(super) struct Constructor<'a> {
    pub(super) required: Vec<&'a str>,
    pub(super) optional: Vec<&'a str>,
    /// The required parameter that is a model.
    pub(super) model: Option<&'a str>,
}

impl<'a> Constructor<'a> {
    fn of(function: &'a StmtFunctionDef) -> Self {
        let mut constructor = Self::default();
        for parameter in function.parameters.iter_non_variadic_params().skip(1) {
            let name = parameter.name().as_str();
            let type_name = parameter.annotation().and_then(last_name).unwrap_or_default();
            let is_model = ["model", "evaluation_model", "llm", "judge", "client"].contains(&name)
                || ["LLM", "Model", "Judge"].iter().any(|part| type_name.contains(part));
            match (&parameter.default, is_model) {
                (None, true) => constructor.model = Some(name),
                (None, false) => constructor.required.push(name),
                (Some(_), false) => constructor.optional.push(name),
                (Some(_), true) => {}
            }
        }
        constructor
    }

    /// Returns the parameters that karat fills.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.required.iter().chain(&self.optional).copied()
    }
}

impl<'a> Evaluator<'a> {
    /// Recognises an evaluator in a file with the given body; a function that was named needs less evidence.
    pub(super) fn recognise(
        stmt: &'a Stmt,
        body: &'a [Stmt],
        imported: &BTreeSet<Framework>,
        is_named: bool,
    ) -> Option<Self> {
        match stmt {
            Stmt::FunctionDef(function) => {
                let framework = framework_of_function(function, imported, is_named)?;
                Some(Self { framework, form: Form::Function(function) })
            }
            Stmt::ClassDef(class) => {
                let bases = own_bases(class, body);
                let framework = std::iter::once(class).chain(bases.iter().copied()).find_map(framework_of_class)?;
                Some(Self { framework, form: Form::Class(class, bases) })
            }
            _ => None,
        }
    }

    /// Returns a method of its class, or of a base class in the same file.
    pub(super) fn method(&self, name: &str) -> Option<&'a StmtFunctionDef> {
        let Form::Class(class, bases) = &self.form else { return None };
        let own = std::iter::once(*class).chain(bases.iter().copied());
        own.flat_map(|class| &class.body).filter_map(Stmt::as_function_def_stmt).find(|method| method.name == *name)
    }

    /// Returns the parameters of its class's constructor.
    pub(super) fn constructor(&self) -> Constructor<'a> {
        self.method("__init__").map(Constructor::of).unwrap_or_default()
    }

    pub(super) fn name(&self) -> &'a str {
        match self.form {
            Form::Function(function) => &function.name,
            Form::Class(class, _) => &class.name,
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
                let name = parameter.name().as_str();
                ["expected_output", "reference_outputs", "expectations", "example", "item"].contains(&name)
                    || EXPECTATIONS.contains(&name)
            }),
            Form::Class(..) => true,
        };
        if self.is_async() {
            notes.push("it is async: it must not await external calls".to_owned());
        }
        let options: Vec<&str> = self.constructor().names().collect();
        if !options.is_empty() {
            notes.push(format!("its constructor is filled from 'params': {}", options.join(", ")));
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
        if matches!(self.form, Form::Class(..)) {
            let method = self.framework.scoring_method();
            if self.method(method).is_none() {
                obstacles.push(format!("its class has no method '{method}' of its own"));
            }
            if let Some(model) = self.constructor().model {
                obstacles.push(format!("its constructor takes '{model}', which needs a model"));
            }
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

/// Returns the base classes of a class that are in the same file, nearest first.
fn own_bases<'a>(class: &'a StmtClassDef, body: &'a [Stmt]) -> Vec<&'a StmtClassDef> {
    let mut found: Vec<&StmtClassDef> = vec![class];
    let mut next = 0;
    while let Some(class) = found.get(next).copied() {
        let is_base = |other: &&StmtClassDef| base_names(class).any(|base| other.name == *base);
        let bases = body.iter().filter_map(Stmt::as_class_def_stmt).filter(is_base);
        let new: Vec<&StmtClassDef> =
            bases.filter(|base| found.iter().all(|known| !std::ptr::eq(*known, *base))).collect();
        found.extend(new);
        next += 1;
    }
    found.split_off(1)
}

/// Returns the names of a class's bases.
pub(super) fn base_names(class: &StmtClassDef) -> impl Iterator<Item = &str> {
    class.arguments.iter().flat_map(|arguments| arguments.args.iter()).filter_map(last_name)
}

fn framework_of_class(class: &StmtClassDef) -> Option<Framework> {
    base_names(class).find_map(|base| match base {
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
            // A function of the output, as autoevals, Langfuse and others accept it. Without an import, an example can
            // be anything.
            let any = || Framework::ALL.into_iter().filter(|_| takes_output && !has("example")).find(fits);
            is_named.then(|| if is_plain(function) { Some(Framework::Plain) } else { any() }).flatten()
        }),
        _ => None,
    }
}

/// Whether a function takes the output and the expected value, by their usual names.
fn is_plain(function: &StmtFunctionDef) -> bool {
    let required = function.parameters.iter_non_variadic_params().filter(|parameter| parameter.default.is_none());
    let names: Vec<&str> = required.map(|parameter| parameter.name().as_str()).collect();
    let [first, second] = names[..] else { return false };
    let is_pair = |first, second| PREDICTIONS.contains(first) && EXPECTATIONS.contains(second);
    is_pair(&first, &second) || is_pair(&second, &first)
}

/// Whether a framework can fill the parameters of a function that have no default.
fn can_fill_parameters(framework: Framework, function: &StmtFunctionDef) -> bool {
    let known = framework.arguments();
    let mut required = function.parameters.iter_non_variadic_params().filter(|parameter| parameter.default.is_none());
    required.all(|parameter| known.iter().any(|(name, _)| parameter.name() == *name))
}

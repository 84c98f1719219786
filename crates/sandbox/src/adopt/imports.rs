//! The imports of an evaluator, and where they come from in the sandbox.

use ruff_python_ast::{Alias, Stmt};

use super::framework::Framework;
use crate::modules::{OPTIONAL_MODULES, entry_of, is_common, root};

/// An imported name.
pub(super) struct Imported<'a> {
    /// The module; a relative one starts with a dot.
    pub(super) module: String,
    /// The name that is imported from the module; `None` for the module itself.
    pub(super) member: Option<&'a str>,
    /// The name after `as`.
    pub(super) alias: Option<&'a str>,
}

impl<'a> Imported<'a> {
    /// Returns the names that an import statement imports, of those that are used; `None` for other statements.
    pub(super) fn of(stmt: &'a Stmt, is_used: &dyn Fn(&str) -> bool) -> Option<Vec<Self>> {
        let is_used = |alias: &Alias| {
            let name = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
            name == "*" || is_used(root(name))
        };
        match stmt {
            Stmt::Import(import) => {
                let names = import.names.iter().filter(|alias| is_used(alias));
                let imported = |alias: &'a Alias| Self {
                    module: alias.name.to_string(),
                    member: None,
                    alias: alias.asname.as_deref(),
                };
                Some(names.map(imported).collect())
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_deref().unwrap_or_default();
                let module = format!("{}{module}", ".".repeat(usize::try_from(import.level).unwrap_or_default()));
                let names = import.names.iter().filter(|alias| module == "__future__" || is_used(alias));
                let imported = |alias: &'a Alias| Self {
                    module: module.clone(),
                    member: Some(alias.name.as_str()),
                    alias: alias.asname.as_deref(),
                };
                Some(names.map(imported).collect())
            }
            _ => None,
        }
    }

    /// Returns the statement that imports only this name.
    pub(super) fn statement(&self) -> String {
        let alias = self.alias.map(|alias| format!(" as {alias}")).unwrap_or_default();
        match self.member {
            Some(member) => format!("from {} import {member}{alias}", self.module),
            None => format!("import {}{alias}", self.module),
        }
    }

    /// Returns the name that the import binds.
    pub(super) fn bound(&self) -> &str {
        self.alias.or(self.member).unwrap_or_else(|| root(&self.module))
    }
}

/// Where a module comes from in the sandbox.
pub(super) enum ModuleOrigin {
    Common,
    Optional(&'static str),
    /// A module of the framework, whose classes have stand-ins.
    StandIn,
    /// Not a module of the sandbox or of the framework.
    Other,
}

pub(super) fn origin_of(module: &str, framework: Framework) -> ModuleOrigin {
    if is_common(module) || module == "__future__" {
        return ModuleOrigin::Common;
    }
    let is_package = |entry: &&str| root(entry) == module && *entry != module;
    if let Some(entry) = OPTIONAL_MODULES.into_iter().find(is_package) {
        return ModuleOrigin::Optional(entry);
    }
    if let Some(entry) = entry_of(module, OPTIONAL_MODULES.into_iter()) {
        return ModuleOrigin::Optional(entry);
    }
    if framework.modules().contains(&root(module)) {
        return ModuleOrigin::StandIn;
    }
    ModuleOrigin::Other
}

/// Whether a member of a framework's module calls a model.
pub(super) fn needs_model(module: &str, member: &str) -> bool {
    const MODULES: [&str; 9] = [
        "autoevals.llm",
        "autoevals.ragas",
        "braintrust.oai",
        "deepeval.models",
        "langfuse.openai",
        "mlflow.genai.judges",
        "openevals.llm",
        "phoenix.evals.llm",
        "phoenix.evals.models",
    ];
    const MEMBERS: [&str; 30] = [
        "AnswerRelevancy",
        "AsyncOpenAI",
        "Battle",
        "ClassificationEvaluator",
        "ClosedQA",
        "ContextRecall",
        "ContextRelevancy",
        "Correctness",
        "EmbeddingSimilarity",
        "Factuality",
        "Faithfulness",
        "GEval",
        "Guidelines",
        "Humor",
        "LLM",
        "LLMClassifier",
        "Moderation",
        "OpenAI",
        "OpenAIModel",
        "RelevanceToQuery",
        "Safety",
        "create_async_llm_as_judge",
        "create_classifier",
        "create_llm_as_judge",
        "initialize_model",
        "llm_classify",
        "make_judge",
        "wrap_anthropic",
        "wrap_litellm",
        "wrap_openai",
    ];
    let is_metric = module.starts_with("deepeval.metrics") && member.ends_with("Metric") && member != "BaseMetric";
    MEMBERS.contains(&member) || entry_of(module, MODULES.into_iter()).is_some() || is_metric
}

/// Returns the reason why the sandbox does not have a module.
pub fn unavailable_reason(module: &str) -> String {
    const REASONS: [(&str, &[&str]); 4] = [
        (
            "a model",
            &[
                "anthropic",
                "autoevals",
                "azure",
                "boto3",
                "botocore",
                "cohere",
                "google",
                "groq",
                "bert_score",
                "dspy",
                "instructor",
                "langchain",
                "langchain_anthropic",
                "langchain_aws",
                "langchain_community",
                "langchain_core",
                "langchain_google_genai",
                "langchain_ollama",
                "langchain_openai",
                "langgraph",
                "litellm",
                "llama_index",
                "mistralai",
                "ollama",
                "openai",
                "openevals",
                "pydantic_ai",
                "ragas",
                "sentence_transformers",
                "torch",
                "transformers",
                "vertexai",
            ],
        ),
        ("the network", &["aiohttp", "http", "httpx", "requests", "socket", "urllib", "urllib3", "websockets"]),
        (
            "files, a process or the environment",
            &[
                "asyncio",
                "dotenv",
                "glob",
                "io",
                "multiprocessing",
                "os",
                "pathlib",
                "shutil",
                "sqlite3",
                "subprocess",
                "sys",
                "tempfile",
                "threading",
                "time",
            ],
        ),
        ("native code", &["cv2", "numpy", "pandas", "PIL", "pydantic", "rapidfuzz", "scipy", "sklearn", "spacy"]),
    ];
    let requirement = REASONS.iter().find(|(_, modules)| modules.contains(&root(module)));
    match requirement {
        Some((requirement, _)) => format!("it imports '{module}', which needs {requirement}"),
        None => format!("it imports '{module}', which the sandbox does not have"),
    }
}

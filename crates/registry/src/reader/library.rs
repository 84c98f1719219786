//! Detects the library of a tool from imports: libraries derive descriptions from docstrings differently.

use super::docstring::{Docstring, before_arguments, without_arguments};
use super::evaluate::{LocatedExpr, ResolvedValue};
use super::griffe::{description_with_returns, has_section, summary};
use super::project::{ModuleId, Project};
use super::requirements::max_major_version;
use super::syntax::{Expr, Kind, Owner, Statement};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    FastMcp,
    OpenAiAgents,
    PydanticAi,
    Smolagents,
    Strands,
    /// Libraries that use the package `docstring_parser`.
    DocstringParser,
    CrewAi,
    LangChain,
    Other,
}

/// Libraries by top-level package.
const PACKAGES: [(&str, Library); 13] = [
    ("langchain", Library::LangChain),
    ("langchain_core", Library::LangChain),
    ("langchain_community", Library::LangChain),
    ("fastmcp", Library::FastMcp),
    ("agents", Library::OpenAiAgents),
    ("pydantic_ai", Library::PydanticAi),
    ("smolagents", Library::Smolagents),
    ("strands", Library::Strands),
    ("anthropic", Library::DocstringParser),
    ("livekit", Library::DocstringParser),
    ("agno", Library::DocstringParser),
    ("crewai", Library::CrewAi),
    ("crewai_tools", Library::CrewAi),
];

/// Decorators that identify a library even if it is vendored.
const DECORATORS: [(&str, Library); 3] = [
    ("function_tool", Library::OpenAiAgents),
    ("tool_plain", Library::PydanticAi),
    ("beta_tool", Library::DocstringParser),
];

impl Library {
    /// Returns the description that the library derives from a docstring.
    pub(crate) fn description(self, text: &str) -> String {
        let docstring = Docstring::read(text);
        let whole = &docstring.whole;
        match self {
            Self::FastMcp if has_section(whole) => summary(whole, false),
            Self::OpenAiAgents => summary(whole, true),
            Self::PydanticAi => description_with_returns(text),
            Self::Smolagents => before_arguments(whole),
            Self::Strands => without_arguments(whole),
            Self::DocstringParser => docstring.summary,
            Self::FastMcp | Self::CrewAi | Self::LangChain | Self::Other => docstring.whole,
        }
    }

    /// Whether a single text in the decorator is the name, even with spaces.
    pub(crate) fn first_text_is_name(self) -> bool {
        self == Self::CrewAi
    }

    fn from_import(dotted: &str) -> Option<Self> {
        let package = dotted.split('.').next().unwrap_or(dotted);
        PACKAGES.iter().find(|(known, _)| *known == package).map(|(_, library)| *library)
    }
}

/// The first major version of `FastMCP` that omits the sections of a docstring from the description.
const FASTMCP_WITHOUT_SECTIONS: u64 = 4;

impl Project {
    /// Returns the description for the library version that the project requires.
    pub(crate) fn docstring_description(&self, module: ModuleId, library: Library, text: &str) -> String {
        let is_older = || {
            let version = max_major_version(&self.module(module).path, "fastmcp");
            version.is_some_and(|version| version < FASTMCP_WITHOUT_SECTIONS)
        };
        let library = if library == Library::FastMcp && is_older() { Library::Other } else { library };
        library.description(text)
    }

    /// Returns the library of a decorator or call.
    pub(crate) fn library<'p>(&'p self, located: &LocatedExpr<'p>) -> Library {
        let callee = match &located.expr.kind {
            Kind::Call(call) => located.with(&call.callee),
            _ => located.clone(),
        };
        let dotted = self.qualified_name(&callee, 0);
        if let Some(library) = dotted.as_deref().and_then(Library::from_import) {
            return library;
        }
        let name = callee.expr.last_name().unwrap_or_default();
        if let Some((_, library)) = DECORATORS.iter().find(|(known, _)| *known == name) {
            return *library;
        }
        if dotted.is_some() {
            return Library::Other;
        }
        // Fall back to the imports of the module.
        let mut imports =
            self.module(callee.module).scopes[0].statements.iter().filter_map(|statement| match statement {
                Statement::Import(import) => Library::from_import(&import.from),
                _ => None,
            });
        imports.next_back().unwrap_or(Library::Other)
    }

    /// Returns the qualified name of a callee, through instances: `agents.function_tool`, `fastmcp.FastMCP.tool`.
    fn qualified_name<'p>(&'p self, located: &LocatedExpr<'p>, depth: usize) -> Option<String> {
        if depth > 8 {
            return None;
        }
        if let Kind::Member(object, name) = &located.expr.kind {
            let object = self.qualified_name(&located.with(object), depth + 1)?;
            return Some(format!("{object}.{name}"));
        }
        match self.resolve(located) {
            ResolvedValue::Foreign(dotted) => dotted.contains('.').then_some(dotted),
            ResolvedValue::Expr(resolved) => match &resolved.expr.kind {
                Kind::Call(call) => self.qualified_name(&resolved.with(&call.callee), depth + 1),
                _ => None,
            },
            ResolvedValue::Class(module, class) => {
                let definition = &self.module(module).classes[class];
                let scope = self.module(module).scopes[definition.scope].parent.unwrap_or(0);
                definition
                    .bases
                    .iter()
                    .find_map(|base| self.qualified_name(&LocatedExpr::new(module, scope, base), depth + 1))
            }
            // A parameter may be annotated: `def register(mcp: FastMCP)`.
            ResolvedValue::Unknown(_) => {
                self.parameter_annotation(located).and_then(|annotation| self.qualified_name(&annotation, depth + 1))
            }
            _ => None,
        }
    }

    pub(super) fn parameter_annotation<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<LocatedExpr<'p>> {
        let Kind::Name(name) = &located.expr.kind else { return None };
        let module = self.module(located.module);
        let mut scope = Some(located.scope);
        while let Some(id) = scope {
            if let Owner::Function(function) = module.scopes[id].owner {
                let parameter = module.functions[function].parameters.iter().find(|parameter| parameter.name == *name);
                if let Some(parameter) = parameter {
                    let outside = module.scopes[id].parent.unwrap_or(0);
                    let annotation: Option<&Expr> = parameter.annotation.as_ref();
                    return annotation.map(|annotation| LocatedExpr::new(located.module, outside, annotation));
                }
            }
            scope = module.scopes[id].parent;
        }
        None
    }
}

//! Which library makes a tool of something, by its imports: libraries differ in what they make of a docstring.

use super::docstring::{Docstring, before_arguments, without_arguments};
use super::evaluate::{Located, Meaning};
use super::griffe::{first_text, has_section, text_and_result};
use super::pins::major_version;
use super::project::{ModuleId, Project};
use super::syntax::{Expr, Kind, Owner, Statement};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    FastMcp,
    OpenAiAgents,
    PydanticAi,
    Smolagents,
    Strands,
    /// Those that take docstrings apart with the package `docstring_parser`.
    DocstringParser,
    CrewAi,
    LangChain,
    Other,
}

/// The first part of a package's name.
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

/// Decorators that only one library has, wherever a copy of it lies.
const DECORATORS: [(&str, Library); 3] = [
    ("function_tool", Library::OpenAiAgents),
    ("tool_plain", Library::PydanticAi),
    ("beta_tool", Library::DocstringParser),
];

impl Library {
    /// Returns what is the description of a docstring.
    pub(crate) fn description(self, text: &str) -> String {
        let docstring = Docstring::read(text);
        let whole = &docstring.whole;
        match self {
            Self::FastMcp if has_section(whole) => first_text(whole, false),
            Self::OpenAiAgents => first_text(whole, true),
            Self::PydanticAi => text_and_result(text),
            Self::Smolagents => before_arguments(whole),
            Self::Strands => without_arguments(whole),
            Self::DocstringParser => docstring.summary,
            Self::FastMcp | Self::CrewAi | Self::LangChain | Self::Other => docstring.whole,
        }
    }

    /// Tells whether a single text in the decorator is the name, even with spaces.
    pub(crate) fn first_text_is_name(self) -> bool {
        self == Self::CrewAi
    }

    fn of(dotted: &str) -> Option<Self> {
        let package = dotted.split('.').next().unwrap_or(dotted);
        PACKAGES.iter().find(|(known, _)| *known == package).map(|(_, library)| *library)
    }
}

/// The first major version of `FastMCP` that leaves the sections of a docstring out of the description.
const FASTMCP_WITHOUT_SECTIONS: u64 = 4;

impl Project {
    /// Returns what is the description of a docstring, for the version of the library that the project asks for.
    pub(crate) fn docstring_description(&self, module: ModuleId, library: Library, text: &str) -> String {
        let is_older = || {
            let version = major_version(&self.module(module).path, "fastmcp");
            version.is_some_and(|version| version < FASTMCP_WITHOUT_SECTIONS)
        };
        let library = if library == Library::FastMcp && is_older() { Library::Other } else { library };
        library.description(text)
    }

    /// Returns the library of a decorator or call.
    pub(crate) fn library<'p>(&'p self, located: &Located<'p>) -> Library {
        let callee = match &located.expr.kind {
            Kind::Call(call) => located.with(&call.callee),
            _ => located.clone(),
        };
        let dotted = self.origin(&callee, 0);
        if let Some(library) = dotted.as_deref().and_then(Library::of) {
            return library;
        }
        let name = callee.expr.last_name().unwrap_or_default();
        if let Some((_, library)) = DECORATORS.iter().find(|(known, _)| *known == name) {
            return *library;
        }
        if dotted.is_some() {
            return Library::Other;
        }
        // What it is does not show: the module's imports are the best hint.
        let mut imports =
            self.module(callee.module).scopes[0].statements.iter().filter_map(|statement| match statement {
                Statement::Import(import) => Library::of(&import.from),
                _ => None,
            });
        imports.next_back().unwrap_or(Library::Other)
    }

    /// Returns the dotted name of what something was made by: `agents.function_tool`, `fastmcp.FastMCP.tool`.
    fn origin<'p>(&'p self, located: &Located<'p>, depth: usize) -> Option<String> {
        if depth > 8 {
            return None;
        }
        if let Kind::Member(object, name) = &located.expr.kind {
            let object = self.origin(&located.with(object), depth + 1)?;
            return Some(format!("{object}.{name}"));
        }
        match self.meaning(located) {
            Meaning::Foreign(dotted) => dotted.contains('.').then_some(dotted),
            Meaning::Expr(found) => match &found.expr.kind {
                Kind::Call(call) => self.origin(&found.with(&call.callee), depth + 1),
                _ => None,
            },
            Meaning::Class(module, class) => {
                let definition = &self.module(module).classes[class];
                let scope = self.module(module).scopes[definition.scope].parent.unwrap_or(0);
                definition.bases.iter().find_map(|base| self.origin(&Located::new(module, scope, base), depth + 1))
            }
            // A parameter may say its type: `def register(mcp: FastMCP)`.
            Meaning::Unknown(_) => self.parameter_annotation(located).and_then(|found| self.origin(&found, depth + 1)),
            _ => None,
        }
    }

    pub(super) fn parameter_annotation<'p>(&'p self, located: &Located<'p>) -> Option<Located<'p>> {
        let Kind::Name(name) = &located.expr.kind else { return None };
        let module = self.module(located.module);
        let mut scope = Some(located.scope);
        while let Some(id) = scope {
            if let Owner::Function(function) = module.scopes[id].owner {
                let parameter = module.functions[function].parameters.iter().find(|one| one.name == *name);
                if let Some(parameter) = parameter {
                    let outside = module.scopes[id].parent.unwrap_or(0);
                    let annotation: Option<&Expr> = parameter.annotation.as_ref();
                    return annotation.map(|annotation| Located::new(located.module, outside, annotation));
                }
            }
            scope = module.scopes[id].parent;
        }
        None
    }
}

//! The libraries that make tools of functions: which one a decorator is of, and what it makes of a docstring.

use ruff_python_ast::Expr;

use super::text::{clean_doc, compiled_doc, dedent, strip};
use super::version::DocstringStyle;
use super::world::{Meaning, Scope, World};

/// Decorators that make a tool of a function.
const DECORATORS: [&str; 9] = [
    "tool",
    "tool_plain",
    "function_tool",
    "beta_tool",
    "beta_async_tool",
    "register_tool",
    "mcp_tool",
    "kernel_function",
    "ai_tool",
];

/// A library, as far as it decides what a model gets to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framework {
    /// The official MCP SDK: the docstring as it is.
    Mcp,
    /// The package `fastmcp`
    FastMcp,
    LangChain,
    OpenAiAgents,
    PydanticAi,
    Anthropic,
    /// It writes descriptions of its own around the docstring.
    CrewAi,
    /// A decorator of the project, or of a library that is not known here.
    Other,
}

impl Framework {
    /// Returns the library that a full name belongs to.
    fn of_name(dotted: &str) -> Self {
        match dotted.split('.').next().unwrap_or_default() {
            "mcp" => Self::Mcp,
            "fastmcp" => Self::FastMcp,
            "langchain" | "langchain_core" | "langchain_community" | "langgraph" => Self::LangChain,
            "agents" => Self::OpenAiAgents,
            "pydantic_ai" => Self::PydanticAi,
            "anthropic" => Self::Anthropic,
            "crewai" | "crewai_tools" => Self::CrewAi,
            _ => Self::Other,
        }
    }

    pub(super) fn of_meaning(world: &World<'_>, meaning: &Meaning<'_>) -> Self {
        match meaning {
            Meaning::External(dotted) => Self::of_name(dotted),
            // `server.tool`, where `server = FastMCP("name")`
            Meaning::ValueMember { module, value: Expr::Call(call) } => {
                match world.meaning(Scope::of_module(*module), &call.func) {
                    Meaning::External(dotted) => Self::of_name(&dotted),
                    _ => Self::Other,
                }
            }
            _ => Self::Other,
        }
    }

    /// Tells whether a text in `Annotated[…]` describes a parameter; none where that is not known.
    pub(super) fn takes_annotated_text(self) -> Option<bool> {
        match self {
            Self::LangChain | Self::OpenAiAgents | Self::FastMcp => Some(true),
            Self::Mcp | Self::Anthropic | Self::PydanticAi => Some(false),
            Self::CrewAi | Self::Other => None,
        }
    }

    /// Tells whether parameters are described by the docstring's sections.
    pub(super) fn reads_sections(self) -> bool {
        !matches!(self, Self::Mcp | Self::LangChain)
    }

    /// Tells whether a function's schema refuses arguments that it does not name.
    pub(super) fn closes_objects(self) -> bool {
        matches!(self, Self::FastMcp | Self::PydanticAi | Self::Anthropic)
    }

    /// Returns what becomes of a description that the source gives.
    pub(super) fn given(self, description: &str) -> String {
        if self == Self::LangChain { strip(description).to_owned() } else { description.to_owned() }
    }

    /// Tells whether an empty description counts as none.
    pub(super) fn passes_over_empty(self) -> bool {
        !matches!(self, Self::LangChain | Self::FastMcp | Self::PydanticAi)
    }

    /// Returns the description that a docstring becomes, or why that is not known.
    pub(super) fn description(self, doc: &str, style: Option<DocstringStyle>) -> Result<String, &'static str> {
        let (kept, stripped) = (doc.to_owned(), compiled_doc(doc));
        let seen = match style {
            Some(DocstringStyle::Kept) => vec![kept],
            Some(DocstringStyle::Stripped) => vec![stripped],
            None => vec![kept, stripped],
        };
        let mut made = seen.iter().map(|doc| self.of_doc(doc));
        let first = made.next().unwrap_or(Ok(String::new()))?;
        for other in made {
            if other? != first {
                return Err("Python keeps the docstring's indentation up to 3.12 and not from 3.13 on \
                            (a .python-version says which it is)");
            }
        }
        Ok(first)
    }

    /// Returns what the library makes of a docstring at run time.
    fn of_doc(self, doc: &str) -> Result<String, &'static str> {
        const SECTIONS: &str = "the library takes the docstring apart";
        match self {
            Self::Mcp => Ok(doc.to_owned()),
            Self::LangChain => Ok(strip(&dedent(doc)).to_owned()),
            Self::FastMcp | Self::OpenAiAgents | Self::PydanticAi => {
                let clean = clean_doc(doc);
                if is_prose(&clean) { Ok(strip(&clean).to_owned()) } else { Err(SECTIONS) }
            }
            Self::Anthropic => {
                let clean = clean_doc(doc);
                if !is_prose(&clean) {
                    return Err(SECTIONS);
                }
                // Its parser takes the first line for a summary, whatever follows.
                Ok(match clean.split_once('\n') {
                    Some((summary, rest)) => format!("{summary}\n\n{}", strip(rest)),
                    None => clean,
                })
            }
            Self::CrewAi => Err("CrewAI writes a description of its own around the docstring"),
            Self::Other => {
                let is_plain = doc == strip(doc) && !doc.contains('\n') && is_prose(doc);
                if is_plain {
                    Ok(doc.to_owned())
                } else {
                    Err("libraries differ in what they make of a docstring of several lines, and it is not clear \
                         which one this is")
                }
            }
        }
    }
}

/// Tells whether a docstring is text only: nothing in it could be taken for a section, a list of parameters or an
/// example.
pub(super) fn is_prose(doc: &str) -> bool {
    let is_ruler = |line: &str| !line.is_empty() && line.chars().all(|letter| matches!(letter, '-' | '=' | '~' | ' '));
    doc.lines().all(|line| {
        let is_odd = line.starts_with([' ', '\t', ':', '@', '>', '`'])
            || line.ends_with(':')
            || strip(line) != line
            || is_ruler(line)
            || line.contains("```");
        !is_odd
    })
}

/// Tells whether a decorator makes a tool: by the last part of its name.
pub(super) fn is_tool_decorator(world: &World<'_>, scope: Scope<'_>, expression: &Expr) -> bool {
    world.last_name(scope, expression).is_some_and(|name| DECORATORS.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const INDENTED: &str = "Looks.\n\n    Use when lost.\n    ";

    #[rstest]
    #[case(Framework::Mcp, Some(DocstringStyle::Kept), Some(INDENTED))]
    #[case(Framework::Mcp, Some(DocstringStyle::Stripped), Some("Looks.\n\nUse when lost.\n"))]
    #[case(Framework::Mcp, None, None)]
    #[case(Framework::LangChain, Some(DocstringStyle::Kept), Some("Looks.\n\n    Use when lost."))]
    #[case(Framework::LangChain, None, None)]
    #[case(Framework::FastMcp, None, Some("Looks.\n\nUse when lost."))]
    #[case(Framework::OpenAiAgents, None, Some("Looks.\n\nUse when lost."))]
    #[case(Framework::Anthropic, None, Some("Looks.\n\nUse when lost."))]
    #[case(Framework::CrewAi, None, None)]
    #[case(Framework::Other, None, None)]
    fn several_lines(
        #[case] framework: Framework,
        #[case] style: Option<DocstringStyle>,
        #[case] description: Option<&str>,
    ) {
        assert_eq!(framework.description(INDENTED, style).ok().as_deref(), description);
    }

    #[rstest]
    #[case(Framework::Mcp)]
    #[case(Framework::LangChain)]
    #[case(Framework::PydanticAi)]
    #[case(Framework::Anthropic)]
    #[case(Framework::Other)]
    fn one_line_is_the_same_for_all(#[case] framework: Framework) {
        assert_eq!(framework.description("Looks around.", None).as_deref(), Ok("Looks around."));
    }

    #[rstest]
    #[case("Looks.\n\nArgs:\n    where: There.")]
    #[case("Looks.\n\n:param where: There.")]
    #[case("Looks.\n\nParameters\n----------\nwhere : str")]
    #[case("Looks.\n\n>>> look()")]
    fn what_may_be_a_section_is_not_guessed(#[case] doc: &str) {
        for framework in [Framework::FastMcp, Framework::OpenAiAgents, Framework::PydanticAi, Framework::Anthropic] {
            assert!(framework.description(doc, None).is_err());
        }
    }
}

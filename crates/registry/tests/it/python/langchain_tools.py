"""Tools of LangChain."""

import textwrap
from inspect import cleandoc
from typing import Annotated, List

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, Tool, tool
from pydantic import BaseModel, Field


class SearchInput(BaseModel):
    """What is searched for."""

    query: str = Field(description="What to look for")
    limit: int = 10


@tool
def plain(query: str) -> str:
    """Searches the web."""
    return ""


@tool
def lines(query: str, tags: List[str] = None) -> str:
    """Searches the archive.

    Use when the web
      does not know.
    """
    return ""


@tool("renamed", args_schema=SearchInput)
def search(query: str, limit: int = 10) -> str:
    """
    Begins on the second line.
    """
    return ""


@tool(description=textwrap.dedent("""
    Given as an argument.
      Indented.
    """))
def described(
    query: Annotated[str, "what to find"],
    user: Annotated[str, InjectedToolArg],
    config: RunnableConfig,
) -> str:
    """Not this."""
    return ""


@tool(parse_docstring=True)
def parsed(query: str) -> str:
    """Takes the docstring apart.

    Args:
        query: What to look for.
    """
    return ""


@tool
class Finish(BaseModel):
    """The answer is ready."""

    answer: str = Field(description="The answer")
    name: str = "nobody"


@tool("ask")
class Question(SearchInput):
    """Asks somebody."""

    whom: str


def add(a: int, b: int = 2) -> int:
    """Adds two numbers."""
    return a + b


ADD = StructuredTool.from_function(func=add, name="add-numbers", description=cleandoc("""Adds.

        Use for sums."""))
ADD_PLAIN = StructuredTool.from_function(add)
SINGLE = Tool("single", add, "Takes a single input.")
SINGLE_NAMED = Tool(name="single_named", func=add, description="Takes a single input too.")
SINGLE_MADE = Tool.from_function(add, "single_made", "Takes a single input as well.")
CALLED = tool("called")(add)


@tool(args_schema=SearchInput)
def described_by_arguments(query: str, limit: int = 10) -> str:
    return ""


class Greeting(BaseTool):
    name: str = "greet"
    description: str = "Greets somebody."

    def _run(self, whom: str, loud: bool = False) -> str:
        return ""


GREET = Greeting()
GREET_LOUDLY = Greeting(name="greet_loudly", description="Shouts at somebody.")

"""Tools of pydantic-ai."""

from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset, RunContext, Tool

agent = Agent("test")


@agent.tool
def balance(ctx: RunContext[int], account: str, pending: bool = True) -> str:
    """Tells a balance.

    Use when somebody asks for money.
    """
    return ""


@agent.tool_plain(name="roll")
def roll_dice(sides: int = 6) -> str:
    """Rolls a die."""
    return ""


@agent.tool_plain
def sections(sides: int) -> str:
    """Has sections.

    Args:
        sides: How many.
    """
    return ""


@agent.tool_plain
def result(sides: int) -> str:
    """Says what it returns.

    Args:
        sides: How many.

    Returns:
        The number,
        as a text.
    """
    return ""


@agent.tool_plain
def typed_result(sides: int) -> str:
    """Says of which type it is.

    Returns:
        str: The number.
    """
    return ""


@agent.tool_plain
def fields(sides: int) -> str:
    """Has fields.

    :param sides: How many.
    :returns: The number.
    :rtype: str
    """
    return ""


class Box(BaseModel):
    """A box."""

    width: int
    height: int = 3


@agent.tool_plain
def single_model(box: Box) -> str:
    """Takes the fields of a box."""
    return ""


@agent.tool
def model_after_context(ctx: RunContext[int], box: Box) -> str:
    """Takes them too."""
    return ""


@agent.tool_plain
def model_and_more(box: Box, count: int) -> str:
    """Takes a box."""
    return ""


def run(**arguments: int) -> int:
    return 0


GIVEN = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
given = Tool.from_schema(run, name="given_schema", description="Has a schema of its own.", json_schema=GIVEN)
toolset = FunctionToolset(tools=[given])

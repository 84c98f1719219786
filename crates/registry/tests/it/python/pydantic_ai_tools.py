"""Tools of pydantic-ai."""

from pydantic_ai import Agent, RunContext

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

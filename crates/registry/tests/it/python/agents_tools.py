"""Tools of the OpenAI Agents SDK."""

from typing import Annotated

from agents import Agent, RunContextWrapper, function_tool


@function_tool(strict_mode=False)
def fetch(url: str, tries: int = 3) -> str:
    """Fetches a page.

    Use when the address is known.
    """
    return ""


@function_tool(name_override="look", description_override="Looks around.", strict_mode=False)
async def look_around(context: RunContextWrapper[int], where: Annotated[str, "a place"]) -> str:
    """Not this."""
    return ""


@function_tool
def sections(url: str, tries: int = 3) -> str:
    """Has sections.

    Args:
        url: The address.
    """
    return ""


@function_tool(use_docstring_info=False)
def undescribed(url: str) -> str:
    """Not this."""
    return ""


translator = Agent(name="Spanish Translator", instructions="Translate.")
BY_NAME = translator.as_tool(tool_name=None, tool_description="Translates to Spanish.")

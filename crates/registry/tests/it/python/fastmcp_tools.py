"""Tools of the package fastmcp."""

from typing import Annotated

from fastmcp import Context, FastMCP
from pydantic import Field

server = FastMCP("x")


@server.tool
def open_door(door: Annotated[int, Field(ge=1, description="Its number")], ctx: Context) -> str:
    """Opens a door.

    Use when it is closed.
    """
    return ""


@server.tool("shut")
def close_door(door: Annotated[int, "its number"] = 1) -> str:
    """Closes a door."""
    return ""


@server.tool()
def sections(door: int) -> str:
    """Has sections.

    Args:
        door: Its number.
    """
    return ""

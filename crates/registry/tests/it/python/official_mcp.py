"""A server of the official MCP SDK."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, Optional, Union

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

NAME = "weather"
UNITS = ["metric", "imperial"]
HINT = "Use when somebody asks for " f"the {NAME}" + ' or "rain".'

mcp = MCPServer(NAME)


class Unit(str, Enum):
    """How numbers are written."""

    METRIC = "metric"
    IMPERIAL = "imperial"


class Place(BaseModel):
    """A place on earth."""

    name: str = Field(description="Its name, e.g. 'Zürich'", min_length=1)
    height: float = Field(0.0, ge=-400, le=9000)
    near: list[Place] = Field(default_factory=list)
    parent: Optional[Place] = None


@dataclass
class Window:
    start: date
    days: int = 7
    labels: list[str] = field(default_factory=list)


class Extra(TypedDict, total=False):
    note: str
    level: int


City = Annotated[str, Field(description="The city", max_length=80)]


@mcp.tool()
def forecast(city: City, days: int = 3, unit: Unit = Unit.METRIC) -> str:
    """Looks up the weather of the next days.

    Use when somebody asks for a forecast.
        An indented line.
    """
    return ""


@mcp.tool(name="now", description=HINT)
async def current(place: Place, ctx: Context, detail: Literal["short", "long"] = "short") -> str:
    """Not this."""
    return ""


@mcp.tool(description="")
def many(
    a: list[int],
    b: dict[str, float],
    c: tuple[int, str],
    d: tuple[int, ...],
    e: set[str],
    f: Union[int, str, None],
    g: Any,
    h: int | None = None,
    i: Annotated[Optional[int], Field(ge=1, description="from one")] = None,
    j: Literal[1, 2] = 1,
    k: bool = False,
    m: list = [],
    n: dict = {},
    o: Annotated[str, "a note"] = "x" "y",
    p: Literal["only"] = "only",
    q: float = -1.5,
) -> str:
    'It\'s "quoted": \u00e9 \N{BULLET} \x41 \101 \
continued\ttab'
    return ""


@mcp.tool()
def rare(window: Window, extra: Extra, loose, *, last: "int" = 0) -> str:
    r"""Raw: \n stays."""
    return ""


@mcp.tool()
def silent(x: int) -> str:
    return ""


class Service:
    @staticmethod
    @mcp.tool()
    def inside(x: int) -> str:
        """Stands in a class."""
        return ""


def register(server: MCPServer) -> None:
    @mcp.tool(title="Within")
    def within(x: str = "é") -> str:
        """Stands in a function."""
        return ""


register(mcp)


@mcp.tool()
def fields(
    a: Annotated[int, Field(5, le=10)],
    b: Annotated[int, Field(default=3)],
    c: Annotated[str, Field(description="required")],
    d: Annotated[str, Field(..., description="required")],
    e: Annotated[list[str], Field(default_factory=list)],
    origin: Annotated[str, Field(alias="from")],
    target: str = Field(alias="to"),
) -> str:
    """Has fields with defaults and aliases."""
    return ""


class Network:
    def ping(self, host: str) -> str:
        """Pings a host."""
        return ""


network = Network()
mcp.add_tool(network.ping, name="network_ping")
mcp.add_tool(lambda q: q, name="lambda_tool", description="A lambda.")

"""A low-level server of the official MCP SDK."""

from enum import Enum

import mcp_types as types
from mcp.server import Server
from pydantic import BaseModel, Field


class Tools(str, Enum):
    STATUS = "repo_status"
    COMMIT = "repo_commit"


class Status(BaseModel):
    repo_path: str


class Commit(Status):
    message: str = Field(description="What changed")
    amend: bool = False


CONTEXT = "Number of lines"


async def list_tools(ctx, params) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(name=Tools.STATUS.value, description="Shows the working tree status", input_schema=Status.model_json_schema()),
            types.Tool(
                name=Tools.COMMIT.value,
                description="Records changes " "to the repository",
                input_schema=Commit.model_json_schema(),
            ),
            types.Tool(
                name="repo_diff",
                description=f"Shows differences. {CONTEXT} can be chosen.",
                input_schema={
                    "type": "object",
                    "properties": {"context": {"type": "integer", "description": CONTEXT}},
                    "required": [],
                },
            ),
        ]
    )


server = Server("repo", on_list_tools=list_tools)

"""Prints the tools of a module as its library offers them to a model."""

import asyncio
import importlib
import inspect
import json
import sys

sys.path.insert(0, sys.argv[1])
module = importlib.import_module(sys.argv[2])
values = list(vars(module).values())


def described(tool, schema):
    return {"name": tool.name, "description": tool.description, "inputSchema": schema}


def official_mcp():
    return [described(tool, tool.input_schema) for tool in asyncio.run(module.mcp.list_tools())]


def langchain_tools():
    from langchain_core.tools import BaseTool

    def schema(tool):
        # The schema repeats the tool's own description.
        schema = tool.tool_call_schema.model_json_schema()
        return {key: value for key, value in schema.items() if key != "description"}

    return [described(tool, schema(tool)) for tool in values if isinstance(tool, BaseTool)]


def agents_tools():
    from agents import FunctionTool

    return [described(tool, tool.params_json_schema) for tool in values if isinstance(tool, FunctionTool)]


def anthropic_tools():
    return [described(tool, tool.input_schema) for tool in values if hasattr(tool, "input_schema")]


def pydantic_ai_tools():
    tools = module.agent._function_toolset.tools.values()
    return [described(tool, tool.function_schema.json_schema) for tool in tools]


def fastmcp_tools():
    listed = module.server.list_tools()
    listed = asyncio.run(listed) if inspect.isawaitable(listed) else listed
    return [described(tool, tool.parameters) for tool in listed]


tools = globals()[sys.argv[2]]()
print(json.dumps({"python": "{}.{}".format(*sys.version_info), "tools": tools}))

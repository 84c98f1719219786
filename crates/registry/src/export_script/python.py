"""Prints the tools of a Python module as JSON, as their library presents them to a model.

    karat tools export-script python > export_tools.py
    python export_tools.py agent/server.py > tools.json          # a file, or a module by its name: agent.server
    python export_tools.py agent/server.py mcp > tools.json      # only this attribute
    python export_tools.py agent/server.py 'build()' > tools.json  # only the return value of this function

karat reads the output with "toolRegistryPath": "tools.json", or runs the script itself with
"toolRegistry": {"command": ["python", "export_tools.py", "agent/server.py"]} in karat.json.

Run it with the agent's Python (3.9 or newer). It imports the module and needs no other packages. Without an attribute it
exports all servers, agents, tools and lists of tools of the module, or else its public functions.
Exits with 1 if there are no tools.
"""

import asyncio
import contextlib
import importlib
import importlib.util
import inspect
import json
import sys
import types
import typing
from pathlib import Path

# Parameters that a library injects.
INJECTED = {"self", "cls", "ctx", "context", "context_variables", "run_manager", "tool_context"}


def load(name):
    """Imports a module by name, or a file; relative imports of a file in a package work."""
    path = Path(name).resolve()
    if path.suffix != ".py":
        sys.path.insert(0, ".")
        return importlib.import_module(name)
    parts, folder = [path.stem], path.parent
    while (folder / "__init__.py").exists():
        parts, folder = [folder.name, *parts], folder.parent
    sys.path[:0] = [str(folder), "."]
    if parts[-1] == "__init__" or len(parts) > 1:
        return importlib.import_module(".".join(parts).removesuffix(".__init__"))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wait(value):
    async def result():
        return await value

    return asyncio.run(result()) if inspect.isawaitable(value) else value


def list_tools(server):
    """Returns the tools of a high-level or low-level MCP server of any major version, or None for other values."""
    handlers = getattr(server, "request_handlers", None) or getattr(server, "_request_handlers", None)
    for key, handler in handlers.items() if isinstance(handlers, dict) else ():
        if key == "tools/list":
            return wait(handler.handler(None, handler.params_type())).tools
        if getattr(key, "__name__", "") == "ListToolsRequest":
            return wait(handler(key(method="tools/list"))).root.tools
    for name in ("list_tools", "get_tools"):
        method = getattr(server, name, None)
        if handlers is None and inspect.iscoroutinefunction(method) and not inspect.signature(method).parameters.get("ctx"):
            tools = wait(method())
            return list(tools.values()) if isinstance(tools, dict) else tools
    return None


def schema(tool):
    """Returns the JSON Schema of a library's tool, or None for other values."""
    if hasattr(tool, "tool_call_schema") and type(tool).__name__ == "Tool" and tool.args_schema is None:
        return {"type": "object", "properties": {"__arg1": {"type": "string"}}, "required": ["__arg1"]}
    if hasattr(tool, "tool_call_schema"):  # LangChain, whose schema repeats the description
        model = tool.tool_call_schema
        model = model if isinstance(model, dict) else getattr(model, "model_json_schema", None) or model.schema
        model = model() if callable(model) else model
        return {key: value for key, value in model.items() if key != "description"}
    if hasattr(tool, "tool_def"):  # Pydantic AI
        return tool.tool_def.parameters_json_schema
    if hasattr(tool, "forward") and isinstance(getattr(tool, "inputs", None), dict):  # smolagents
        required = [name for name, value in tool.inputs.items() if not value.get("nullable")]
        return {"type": "object", "properties": tool.inputs, "required": required}
    # OpenAI Agents; MCP, Anthropic; FastMCP
    for name in ("params_json_schema", "input_schema", "inputSchema", "parameters"):
        if isinstance(getattr(tool, name, None), dict):
            return getattr(tool, name)
    return None


def function(tool):
    """Describes a plain function from its signature."""
    try:
        hints = typing.get_type_hints(tool, include_extras=True)
    except Exception:
        hints = {}
    fields = {}
    for name, parameter in inspect.signature(tool).parameters.items():
        kind = hints.get(name, typing.Any)
        is_variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if not is_variadic and name not in INJECTED and not getattr(kind, "__name__", "").endswith("Context"):
            fields[name] = (kind, ... if parameter.default is parameter.empty else parameter.default)
    try:
        from pydantic import create_model

        parameters = create_model(tool.__name__, **fields).model_json_schema()
    except Exception:  # without pydantic, or with types that it does not support
        names = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
        properties = {name: {"type": names[kind]} if kind in names else {} for name, (kind, _) in fields.items()}
        required = [name for name, (_, default) in fields.items() if default is ...]
        parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": tool.__name__, "description": inspect.getdoc(tool), "inputSchema": parameters}


def collect(value, functions=False, depth=0):
    """Yields the tools in a value; plain functions only if `functions` is set."""
    if depth > 8 or isinstance(value, (str, bytes, type)):
        return
    if isinstance(value, types.ModuleType):
        for name, item in list(vars(value).items()):
            is_named = "tool" in name.lower() or "function" in name.lower()
            if not name.startswith("__") and not isinstance(item, types.ModuleType):
                yield from collect(item, isinstance(item, (list, tuple, dict)) and is_named, depth + 1)
    elif isinstance(value, dict):
        shape = value["function"] if isinstance(value.get("function"), dict) else value
        if isinstance(shape.get("name"), str) and {"description", "parameters", "input_schema", "inputSchema"} & set(shape):
            yield value
        else:
            yield from collect(list(value.values()), functions, depth)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from collect(item, functions, depth + 1)
    elif isinstance(getattr(value, "tool_spec", None), dict):  # Strands
        spec = value.tool_spec
        yield {**spec, "inputSchema": spec["inputSchema"].get("json", spec["inputSchema"])}
    elif isinstance(getattr(value, "name", None), str) and schema(value) is not None:
        yield {"name": value.name, "description": getattr(value, "description", None), "inputSchema": schema(value)}
    elif inspect.isroutine(value):
        if functions:
            yield function(value)
    elif not callable(getattr(value, "tools", None)) or hasattr(value, "toolsets"):
        yield from collect(list_tools(value) or [], True, depth + 1)
        for name in ("toolsets", "tools", "functions"):  # agents and toolsets
            if isinstance(getattr(value, name, None), (list, tuple, dict)):
                yield from collect(getattr(value, name), True, depth + 1)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: export_tools.py MODULE_OR_FILE [ATTRIBUTE]")
    with contextlib.redirect_stdout(sys.stderr):  # the module may print
        module = source = load(sys.argv[1])
        for name in sys.argv[2].split(".") if len(sys.argv) == 3 else ():
            source = getattr(source, name.removesuffix("()"))
            source = wait(source()) if name.endswith("()") else source
        found = list(collect(source, source is not module))
        if not found and source is module:
            own = [item for name, item in vars(module).items() if inspect.isfunction(item) and name[0] != "_"]
            found = [function(item) for item in own if item.__module__ == module.__name__]
    tools = {}
    for tool in found:
        name = tool.get("function", tool)["name"]
        if tools.setdefault(name, tool) != tool:
            print(f"warning: duplicate tool name '{name}'; the second definition is ignored", file=sys.stderr)
    if not tools:
        sys.exit(f"error: no tools found in {' '.join(sys.argv[1:])}")
    print(json.dumps(list(tools.values()), indent=2, default=str))


if __name__ == "__main__":
    main()

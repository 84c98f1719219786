"""Answers messages with a function of the project: a request per line on stdin, a reply per line on stdout."""

import difflib
import importlib
import inspect
import json
import os
import sys
import time
import traceback

PARAMETERS = {
    "conversation_id": "conversationId",
    "turn": "turn",
    "messages": "messages",
    "case_id": "caseId",
    "traceparent": "traceparent",
}


class Invalid(Exception):
    """The function cannot be used."""


def main():
    module_name, function_name, root = sys.argv[1:4]
    sys.argv = [module_name]
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    # What the function and its programs print must not get between the replies, and nothing else reads the requests.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)
    sys.path[:] = [root] + [path for path in sys.path if path not in ("", root)]

    def send(message):
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, default=to_json)
        data = (text + "\n").encode("utf-8", "replace")
        while data:
            data = data[replies.write(data):]

    try:
        call = Function(load(module_name, function_name, root), root)
    except Invalid as error:
        return send({"failed": str(error)})
    send({"ready": True})
    for line in requests:
        request = json.loads(line)
        reply = call.answer(request)
        try:
            send(reply)
        except Exception as error:
            send({"error": f"the function's reply cannot be written as JSON: {type(error).__name__}: {error}"})


def load(module_name, function_name, root):
    try:
        value = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise Invalid(f"module '{error.name}' not found in {root}") from None
        raise Invalid(f"{describe(error, root)}; the interpreter is {sys.executable}") from None
    except BaseException as error:
        raise Invalid(describe(error, root)) from None
    name = module_name
    for part in function_name.split("."):
        if not hasattr(value, part):
            names = [known for known in vars(value) if not known.startswith("_")] if hasattr(value, "__dict__") else []
            near = difflib.get_close_matches(part, names, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise Invalid(f"'{name}' has no '{part}'{hint}")
        value, name = getattr(value, part), f"{name}.{part}"
    if not callable(value):
        raise Invalid(f"'{name}' is not a function but of type {type(value).__name__}")
    return value


class Function:
    def __init__(self, function, root):
        self.function = function
        self.root = root
        # One event loop for all messages, since clients that the function keeps belong to it.
        self.loop = None
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            self.run(wait_for_nothing())
        self.by_keyword = False
        self.takes_messages = False
        self.names = []
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            return
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
        keywords = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        takes_all = any(p.kind == p.VAR_KEYWORD for p in parameters)
        self.by_keyword = not positional
        if not positional and "message" not in keywords and not takes_all:
            raise Invalid("the function takes no message: its first parameter must be the message")
        first = positional[0].name if positional else "message"
        self.takes_messages = first == "messages"
        self.names = [name for name in PARAMETERS if name != first and (name in keywords or takes_all)]

    def answer(self, request):
        arguments = {name: request.get(PARAMETERS[name]) for name in self.names}
        started = time.perf_counter()
        first = None
        try:
            message = request["message"]
            if self.takes_messages:
                message = request["messages"] + [{"role": "user", "content": message}]
            if self.by_keyword:
                result = self.function(message=message, **arguments)
            else:
                result = self.function(message, **arguments)
            if inspect.isawaitable(result):
                result = self.run(wait(result))
            if inspect.isasyncgen(result):
                result, first = self.run(collect_async(result))
            elif inspect.isgenerator(result):
                result, first = collect(result)
        except BaseException as error:
            traceback.print_exception(type(error), error, error.__traceback__)
            return {"error": f"the function raised {describe(error, self.root)}"}
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except Exception:
                    pass
        reply = {"reply": result, "elapsedMs": (time.perf_counter() - started) * 1000}
        if first is not None:
            reply["firstTokenMs"] = (first - started) * 1000
        return reply

    def run(self, awaitable):
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(awaitable)


async def wait_for_nothing():
    """Loads what the event loop needs before the first message."""


async def wait(awaitable):
    return await awaitable


def collect(items):
    parts, first = [], None
    for item in items:
        first = first or time.perf_counter()
        parts.append(item)
    return joined(parts), first


async def collect_async(items):
    parts, first = [], None
    async for item in items:
        first = first or time.perf_counter()
        parts.append(item)
    return joined(parts), first


def joined(parts):
    return "".join(parts) if all(isinstance(part, str) for part in parts) else parts


def describe(error, root):
    """Returns the type and text of an exception, with the last line of the project that it passed."""
    text = traceback.format_exception_only(type(error), error)[-1].strip() if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        text = f"{type(error).__name__}: {error.msg}"
        place, line, code = error.filename, error.lineno, (error.text or "").strip()
    else:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
        own = [frame for frame in frames if is_own(frame.filename, root)]
        if not own and not frames:
            return text
        frame = (own or frames)[-1]
        place, line, code = frame.filename, frame.lineno, frame.line
    if not place:
        return text
    place = os.path.relpath(place, root) if is_own(place, root) else place
    return f"{text} ({place}, line {line}: {code})" if code else f"{text} ({place}, line {line})"


def is_own(path, root):
    path = os.path.abspath(path)
    return path.startswith(os.path.join(root, "")) and "site-packages" not in path


def to_json(value):
    if callable(getattr(value, "model_dump", None)) and not isinstance(value, type):
        return value.model_dump()
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None and not isinstance(value, type):
        return {name: getattr(value, name) for name in fields}
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    if callable(getattr(value, "isoformat", None)):
        return value.isoformat()
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    import decimal
    import enum
    import uuid
    from collections.abc import Mapping

    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (decimal.Decimal, uuid.UUID, os.PathLike)):
        return str(value)
    raise TypeError(f"a value of type {type(value).__name__} in the reply")


main()

"""Apps behind Dify's service API. A stand-in: Dify needs a database, a queue, a sandbox and a model.

    python3 server.py
    DIFY_API_KEY=app-agent karat run

The API key selects the app:
    app-agent   an agent by function calling, which reports its calls in `agent_thought` events; streaming only
    app-react   an agent by ReAct: the same, but results are plain text, and calls are made one by one
    app-chat    a chatbot, which reports no calls
"""

from __future__ import annotations

import itertools
import json

from shop import (
    CANNOT_DELETE,
    Call,
    ModelError,
    Reply,
    Request,
    Turn,
    answer,
    count_tokens,
    events,
    json_reply,
    serve,
    words,
)

MODES = {"app-agent": "agent-chat", "app-react": "agent-chat", "app-chat": "chat"}
numbers = itertools.count(1)
conversations: dict[str, list[str]] = {}  # the user's messages by conversation id


def new_id() -> str:
    return f"00000000-0000-4000-8000-{next(numbers):012}"


def error(status: int, code: str, message: str) -> dict:
    return {"status": status, "code": code, "message": message}


def app_of(request: Request) -> str | None:
    key = request.headers.get("authorization", "").removeprefix("Bearer ")
    return key if key in MODES else None


def unauthorized() -> Reply:
    return json_reply(error(401, "unauthorized", "Access token is invalid"), 401)


def observation(call: Call) -> str:
    return f"tool invoke error: {call.error}" if call.error else json.dumps(call.output)


def thoughts(app: str, turn: Turn) -> list[dict]:
    """Return the thoughts of an agent. Calls that were made together share one; their names are separated by ";"."""
    steps = [[call] for call in turn.calls] if app == "app-react" else turn.steps
    made = []
    for step in steps:
        results = {call.name: observation(call) for call in step}
        made.append(
            {
                "thought": "",
                "observation": observation(step[0]) if app == "app-react" else json.dumps(results),
                "tool": ";".join(call.name for call in step),
                "tool_input": json.dumps({call.name: call.arguments for call in step}),
            }
        )
    made.append({"thought": turn.text, "observation": "", "tool": "", "tool_input": ""})
    return [{"id": new_id(), "position": position, **thought} for position, thought in enumerate(made, 1)]


def chat(request: Request) -> Reply:
    body, app = request.body, app_of(request)
    if app is None:
        return unauthorized()
    is_stream = body.get("response_mode") == "streaming"
    for key in ("query", "user"):
        if not body.get(key):
            message = f"Missing required parameter {key} in the JSON body"
            return json_reply(error(400, "invalid_param", message), 400)
    if MODES[app] == "agent-chat" and not is_stream:
        return json_reply(error(400, "invalid_param", "Agent Chat App does not support blocking mode"), 400)
    conversation_id = body.get("conversation_id") or new_id()
    if body.get("conversation_id") and conversation_id not in conversations:
        return json_reply(error(404, "not_found", "Conversation Not Exists."), 404)
    messages = conversations.setdefault(conversation_id, [])
    base = {"conversation_id": conversation_id, "message_id": new_id(), "created_at": 1767225600, "task_id": new_id()}
    try:
        turn = answer([*messages, body["query"]])
    except ModelError as problem:
        failure = error(400, "completion_request_error", str(problem))
        # The status of a stream is sent before the model fails.
        return events([{"event": "error", **base, **failure}]) if is_stream else json_reply(failure, 400)
    messages.append(body["query"])
    if turn.approval:
        turn = Turn(CANNOT_DELETE)
    prompt, completion = count_tokens(body["query"]), count_tokens(turn.text)
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    if is_stream:
        return events(stream(app, turn, base, usage))
    message = {"event": "message", **base, "mode": MODES[app], "answer": turn.text, "metadata": {"usage": usage}}
    return json_reply(message)


def stream(app: str, turn: Turn, base: dict, usage: dict):
    base = {**base, "id": base["message_id"]}
    if MODES[app] == "chat":
        for word in words(turn.text):
            yield {"event": "message", **base, "answer": word}
    else:
        # A thought is sent when it begins, when its calls are known and when they are done, each time with the same id.
        for thought in thoughts(app, turn):
            empty = {"thought": "", "observation": "", "tool": "", "tool_input": ""}
            yield {"event": "agent_thought", **base, **thought, **empty}
            if thought["tool"]:
                yield {"event": "agent_thought", **base, **thought, "observation": ""}
            else:
                for word in words(turn.text):
                    yield {"event": "agent_message", **base, "answer": word}
            yield {"event": "agent_thought", **base, **thought}
    yield {"event": "message_end", **base, "metadata": {"usage": usage}}


def info(request: Request) -> Reply:
    app = app_of(request)
    return json_reply({"name": "Shop", "description": "", "tags": [], "mode": MODES[app]}) if app else unauthorized()


serve(5001, {"GET /v1/info": info, "POST /v1/chat-messages": chat})

"""A flow behind Flowise's prediction API. A stand-in: Flowise needs a database and a flow with a model.

    python3 server.py
    karat run

The flow `shop` reports its calls in `usedTools`. Deleting an account waits for a person, with the `action` to take.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from dataclasses import dataclass, field

from shop import Call, ModelError, Reply, Request, Turn, after_approval, answer, json_reply, serve, words

numbers = itertools.count(1)


@dataclass
class Session:
    messages: list[str] = field(default_factory=list)  # of the user
    approval: Call | None = None  # the call that waits


sessions: dict[str, Session] = defaultdict(Session)


def new_id() -> str:
    return f"00000000-0000-4000-8000-{next(numbers):012}"


def error(status: int, message: str) -> Reply:
    return json_reply({"statusCode": status, "success": False, "message": message, "stack": {}}, status)


def used_tool(call: Call) -> dict:
    used = {"tool": call.name, "toolInput": call.arguments, "toolOutput": "" if call.error else json.dumps(call.output)}
    return {**used, "error": call.error} if call.error else used


def approval_action() -> dict:
    buttons = [{"type": f"agentflowv2-{name.lower()}-button", "label": name} for name in ("Proceed", "Reject")]
    data = {"nodeId": "humanInputAgentflow_0", "nodeLabel": "Human Input 0"}
    return {"id": new_id(), "mapping": {"approve": "Proceed", "reject": "Reject"}, "elements": buttons, "data": data}


def take_turn(session: Session, body: dict) -> Turn:
    if session.approval and body.get("humanInput"):
        call, session.approval = session.approval, None
        return after_approval(call, body["humanInput"]["type"] == "proceed")
    turn = answer([*session.messages, body["question"]])
    session.messages.append(body["question"])
    session.approval = turn.approval
    return turn


def predict(request: Request) -> Reply:
    body, flow = request.body, request.parameters["id"]
    if flow != "shop":
        return error(404, f"Chatflow {flow} not found")
    if not body.get("question") and not body.get("humanInput"):
        return error(500, "Error: predictionsServices.buildChatflow - question is required")
    configured = body.get("overrideConfig", {}).get("sessionId")
    chat_id = body.get("chatId") or configured or new_id()
    session_id = configured or chat_id
    metadata = {"chatId": chat_id, "chatMessageId": new_id(), "sessionId": session_id, "memoryType": "Buffer Memory"}
    try:
        turn = take_turn(sessions[session_id], body)
    except ModelError as problem:
        if body.get("streaming"):  # the status is sent before the model fails
            return stream([("start", ""), ("error", str(problem)), ("end", "[DONE]")])
        return error(500, f"Error: predictionsServices.buildChatflow - {problem}")
    tools = {"usedTools": [used_tool(call) for call in turn.calls]} if turn.calls else {}
    actions = {"action": approval_action()} if turn.approval else {}
    if body.get("streaming"):
        tokens = [("token", word) for word in words(turn.text)]
        end = [*actions.items(), ("metadata", metadata), ("end", "[DONE]")]
        return stream([("start", ""), *tools.items(), *tokens, *end])
    return json_reply({"text": turn.text, **tools, **actions, **metadata})


def stream(parts: list[tuple[str, object]]) -> Reply:
    chunks = [f"message:\ndata:{json.dumps({'event': name, 'data': data})}\n\n" for name, data in parts]
    return Reply(chunks, "text/event-stream")


serve(
    3000,
    {
        "GET /api/v1/ping": lambda request: Reply(["pong"], "text/html; charset=utf-8"),
        "POST /api/v1/prediction/{id}": predict,
    },
)

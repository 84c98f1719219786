"""Workflows behind n8n's Chat Trigger. A stand-in: n8n needs a database and an imported workflow with a model.

    python3 server.py
    karat run

The ID in the URL selects the response mode of the trigger and the options of the agent:
    shop          the output of the last node, with intermediate steps
    shop-plain    the output of the last node, without them
    shop-array    all its items, as a list
    shop-stream   streaming: a line of JSON for each part
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict

from shop import CANNOT_DELETE, Call, ModelError, Reply, Request, answer, json_reply, serve, words

IDS = ["shop", "shop-plain", "shop-array", "shop-stream"]
METADATA = {"nodeId": "5b8c2f0e-3f0a-4a57-9a53-0d1d3d2f7a10", "nodeName": "AI Agent", "itemIndex": 0, "runIndex": 0}
numbers = itertools.count(1)
sessions: dict[str, list[str]] = defaultdict(list)  # the user's messages by session id


def intermediate_step(call: Call) -> dict:
    action = {
        "tool": call.name,
        "toolInput": call.arguments,
        "log": f"Calling {call.name} with input: {json.dumps(call.arguments)}",
        "messageLog": [],
        "toolCallId": f"call_{next(numbers)}",
        "type": "tool_call",
    }
    result = f'There was an error: "{call.error}"' if call.error else json.dumps([call.output])
    return {"action": action, "observation": result}


def stream(*parts: tuple[str, str | None]) -> Reply:
    chunks = [{"type": kind, "content": text, "metadata": METADATA} for kind, text in parts]
    return Reply([f"{json.dumps(chunk)}\n" for chunk in chunks])


def chat(request: Request) -> Reply:
    workflow, session = request.parameters["id"], request.body.get("sessionId", "")
    if workflow not in IDS:
        message = f'The requested webhook "POST {workflow}/chat" is not registered.'
        return json_reply({"code": 404, "message": message, "hint": "The workflow must be active."}, 404)
    question = request.body.get("chatInput")
    if not isinstance(question, str):
        return json_reply({"message": "Error in workflow"}, 500)
    try:
        turn = answer([*sessions[session], question])
    except ModelError as problem:
        if workflow == "shop-stream":
            return stream(("begin", None), ("error", str(problem)))
        return json_reply({"message": "Error in workflow"}, 500)
    sessions[session].append(question)
    text = CANNOT_DELETE if turn.approval else turn.text
    if workflow == "shop-stream":
        return stream(("begin", None), *(("item", word) for word in words(text)), ("end", None))
    output = {"output": text}
    if workflow != "shop-plain":
        output["intermediateSteps"] = [intermediate_step(call) for call in turn.calls]
    return json_reply([output] if workflow == "shop-array" else output)


serve(5678, {"POST /webhook/{id}/chat": chat, "GET /healthz": lambda request: json_reply({"status": "ok"})})

"""An agent behind Anthropic's Messages API. A stand-in: Anthropic's server runs models, not agents, and needs a key.

    python3 server.py
    karat run

The agent runs its own tools and reports them as `mcp_tool_use` and `mcp_tool_result` blocks, as the API does for MCP
servers.
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
    answer,
    count_tokens,
    events,
    json_reply,
    serve,
    words,
)

MODELS = ["shop"]
numbers = itertools.count(1)


def new_id(prefix: str) -> str:
    return f"{prefix}_{next(numbers):08}"


def error(kind: str, message: str) -> dict:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": new_id("req")}


def text_of(message: dict) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def call_blocks(step: list[Call]) -> list[dict]:
    """Return the calls of a step, then their results."""
    uses, results = [], []
    for call in step:
        use = {"type": "mcp_tool_use", "id": new_id("mcptoolu"), "name": call.name, "server_name": "shop"}
        uses.append({**use, "input": call.arguments})
        content = [{"type": "text", "text": call.error or json.dumps(call.output)}]
        is_error = call.error is not None
        results.append({"type": "mcp_tool_result", "tool_use_id": use["id"], "is_error": is_error, "content": content})
    return uses + results


def create(request: Request) -> Reply:
    body = request.body
    messages = body.get("messages")
    for key in ("messages", "max_tokens"):
        if not body.get(key):
            return json_reply(error("invalid_request_error", f"{key}: Field required"), 400)
    if body.get("model") not in MODELS:
        return json_reply(error("not_found_error", f"model: {body.get('model')}"), 404)
    message = {
        "id": new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": count_tokens(*map(text_of, messages)), "output_tokens": 1},
    }
    try:
        turn = answer([text_of(message) for message in messages if message["role"] == "user"])
    except ModelError as problem:
        failure = error("api_error", str(problem))
        if body.get("stream"):  # the status is sent before the model fails
            return events([{"type": "message_start", "message": message}, failure], named=True)
        return json_reply(failure, 500)
    text = CANNOT_DELETE if turn.approval else turn.text
    content = [block for step in turn.steps for block in call_blocks(step)] + [{"type": "text", "text": text}]
    output_tokens = count_tokens(json.dumps(content))
    if body.get("stream"):
        return events(stream(message, content, output_tokens), named=True)
    usage = {**message["usage"], "output_tokens": output_tokens}
    return json_reply({**message, "content": content, "stop_reason": "end_turn", "usage": usage})


def stream(message: dict, content: list[dict], output_tokens: int):
    yield {"type": "message_start", "message": message}
    yield {"type": "ping"}
    for index, block in enumerate(content):
        yield from block_events(index, block)
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": output_tokens}}
    yield {"type": "message_stop"}


def block_events(index: int, block: dict):
    hidden, deltas = {}, []
    if block["type"] == "text":
        hidden = {"text": ""}
        deltas = [{"type": "text_delta", "text": word} for word in words(block["text"])]
    elif "input" in block:
        text = json.dumps(block["input"])
        hidden = {"input": {}}
        parts = [""] + [text[start : start + 9] for start in range(0, len(text), 9)]
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    yield {"type": "content_block_start", "index": index, "content_block": {**block, **hidden}}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def models(request: Request) -> Reply:
    data = [{"type": "model", "id": id, "display_name": id, "created_at": "2026-01-01T00:00:00Z"} for id in MODELS]
    return json_reply({"data": data, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]})


serve(8000, {"GET /v1/models": models, "POST /v1/messages": create})

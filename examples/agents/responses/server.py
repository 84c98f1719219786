"""An agent behind OpenAI's Responses API. A stand-in: OpenAI's server runs models, not agents, and needs a key.

    python3 server.py
    karat run

The agent runs its own tools. The model in the request selects how a reply reports them:
    shop       `function_call` and `function_call_output` items, which do not say which calls failed
    shop-mcp   `mcp_call` items, which do; deleting an account needs an approval
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
    after_approval,
    answer,
    count_tokens,
    events,
    json_reply,
    serve,
    words,
)

MODELS = ["shop", "shop-mcp"]
numbers = itertools.count(1)
conversations: dict[str, list[dict]] = {}  # all items of the conversation, by the id of its last response


def new_id(prefix: str) -> str:
    return f"{prefix}_{next(numbers):08}"


def error(message: str, param: str | None = None) -> dict:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}


def text_of(item: dict) -> str:
    content = item["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def mcp_call(call: Call, approval: str | None = None) -> dict:
    return {
        "id": new_id("mcp"),
        "type": "mcp_call",
        "status": "failed" if call.error else "completed",
        "approval_request_id": approval,
        "arguments": json.dumps(call.arguments),
        "error": call.error,
        "name": call.name,
        "output": None if call.error else json.dumps(call.output),
        "server_label": "shop",
    }


def function_calls(step: list[Call]) -> list[dict]:
    """Return the calls of a step, then their results."""
    calls, outputs = [], []
    for call in step:
        item = {"id": new_id("fc"), "type": "function_call", "status": "completed", "call_id": new_id("call")}
        calls.append({**item, "name": call.name, "arguments": json.dumps(call.arguments)})
        result = {"id": new_id("fco"), "type": "function_call_output", "call_id": item["call_id"]}
        outputs.append({**result, "output": json.dumps({"error": call.error} if call.error else call.output)})
    return calls + outputs


def message_item(text: str) -> dict:
    content = [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]
    return {"id": new_id("msg"), "type": "message", "status": "completed", "role": "assistant", "content": content}


def output_items(model: str, items: list[dict]) -> list[dict]:
    decision = items[-1]
    if decision.get("type") == "mcp_approval_response":
        request = next(item for item in items if item.get("id") == decision["approval_request_id"])
        turn = after_approval(Call(request["name"], json.loads(request["arguments"])), decision["approve"])
        return [*(mcp_call(call, request["id"]) for call in turn.calls), message_item(turn.text)]
    turn = answer([text_of(item) for item in items if item.get("role") == "user"])
    if model == "shop":
        calls = [item for step in turn.steps for item in function_calls(step)]
        reasoning = [{"id": new_id("rs"), "type": "reasoning", "summary": []}] if calls else []
        return [*reasoning, *calls, message_item(CANNOT_DELETE if turn.approval else turn.text)]
    tools = []
    if not any(item.get("type") == "mcp_list_tools" for item in items):
        tools = [{"id": new_id("mcpl"), "type": "mcp_list_tools", "server_label": "shop", "tools": []}]
    if turn.approval:
        arguments = json.dumps(turn.approval.arguments)
        request = {"id": new_id("mcpr"), "type": "mcp_approval_request", "server_label": "shop"}
        return [*tools, {**request, "name": turn.approval.name, "arguments": arguments}]
    return [*tools, *map(mcp_call, turn.calls), message_item(turn.text)]


def create(request: Request) -> Reply:
    body = request.body
    previous = body.get("previous_response_id")
    if body.get("model") not in MODELS:
        return json_reply(error(f"The requested model '{body.get('model')}' does not exist.", "model"), 400)
    if not body.get("input"):
        return json_reply(error("Missing required parameter: 'input'.", "input"), 400)
    if previous and previous not in conversations:
        message = f"Previous response with id '{previous}' not found."
        return json_reply(error(message, "previous_response_id"), 400)
    question = body["input"]
    new_items = [{"role": "user", "content": question}] if isinstance(question, str) else question
    items = conversations.get(previous, []) + new_items
    response = {
        "id": new_id("resp"),
        "object": "response",
        "created_at": 1767225600,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": body["model"],
        "output": [],
        "previous_response_id": previous,
        "store": True,
        "usage": None,
    }
    try:
        output = output_items(body["model"], items)
        conversations[response["id"]] = items + output
        prompt, completion = count_tokens(json.dumps(items)), count_tokens(json.dumps(output))
        usage = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}
        done = {**response, "status": "completed", "output": output, "usage": usage}
    except ModelError as problem:
        done = {**response, "status": "failed", "error": {"code": "server_error", "message": str(problem)}}
    if body.get("stream"):
        numbered = ({**event, "sequence_number": number} for number, event in enumerate(stream(response, done)))
        return events(numbered, named=True)
    return json_reply(done)


def stream(begun: dict, done: dict):
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(done["output"]):
        yield from item_events(index, item)
    yield {"type": f"response.{done['status']}", "response": done}


def item_events(index: int, item: dict):
    at = {"output_index": index, "item_id": item["id"]}
    begun = {**item, **({"status": "in_progress"} if "status" in item else {})}
    kind = item["type"]
    if kind == "message":
        part = item["content"][0]
        yield {"type": "response.output_item.added", "output_index": index, "item": {**begun, "content": []}}
        at["content_index"] = 0
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        for word in words(part["text"]):
            yield {"type": "response.output_text.delta", **at, "delta": word, "logprobs": []}
        yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}
    elif kind in ("function_call", "mcp_call"):
        hidden = {"arguments": ""} if kind == "function_call" else {"arguments": "", "output": None, "error": None}
        arguments = item["arguments"]
        yield {"type": "response.output_item.added", "output_index": index, "item": {**begun, **hidden}}
        for start in range(0, len(arguments), 9):
            yield {"type": f"response.{kind}_arguments.delta", **at, "delta": arguments[start : start + 9]}
        yield {"type": f"response.{kind}_arguments.done", **at, "arguments": arguments}
        if kind == "mcp_call":
            yield {"type": f"response.mcp_call.{item['status']}", **at}
    else:
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def models(request: Request) -> Reply:
    data = [{"id": model, "object": "model", "created": 1767225600, "owned_by": "shop"} for model in MODELS]
    return json_reply({"object": "list", "data": data})


serve(8000, {"GET /v1/models": models, "POST /v1/responses": create})

"""An agent behind OpenAI's Chat Completions API. A stand-in: OpenAI's server runs models, not agents, and needs a key.

    python3 server.py
    karat run

The agent runs its own tools. The model in the request selects what a reply reports about them:
    shop        the calls, in `tool_calls` of the message
    shop-text   nothing, only the text
"""

from __future__ import annotations

import itertools
import json

from shop import Call, ModelError, Reply, Request, answer, count_tokens, events, json_reply, serve, words

MODELS = ["shop", "shop-text"]
numbers = itertools.count(1)


def text_of(message: dict) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def tool_call(call: Call) -> dict:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": f"call_{next(numbers)}", "type": "function", "function": function}


def error(message: str, kind: str = "invalid_request_error") -> dict:
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def deltas(message: dict):
    """Split a message into the parts of a stream, and its calls further."""
    yield {"role": "assistant", "content": "", "refusal": None}
    for index, call in enumerate(message.get("tool_calls", [])):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        yield {"tool_calls": [{**call, "index": index, "function": {"name": name, "arguments": ""}}]}
        for start in range(0, len(arguments), 9):
            yield {"tool_calls": [{"index": index, "function": {"arguments": arguments[start : start + 9]}}]}
    for word in words(message["content"]):
        yield {"content": word}


def choice(key: str, part: dict, finish_reason: str | None = None) -> dict:
    return {"index": 0, key: part, "logprobs": None, "finish_reason": finish_reason}


def stream(base: dict, message: dict, usage: dict | None):
    """Yield the chunks. With `usage`, every chunk has the key: null, but for the last, which has no choices."""
    base = {**base, "object": "chat.completion.chunk", **({"usage": None} if usage else {})}
    for delta in deltas(message):
        yield {**base, "choices": [choice("delta", delta)]}
    yield {**base, "choices": [choice("delta", {}, "stop")]}
    if usage:
        yield {**base, "choices": [], "usage": usage}
    yield "[DONE]"


def complete(request: Request) -> Reply:
    body = request.body
    model, messages = body.get("model"), body.get("messages")
    if model not in MODELS:
        return json_reply(error(f"The model '{model}' does not exist"), 404)
    if not messages:
        return json_reply(error("Missing required parameter: 'messages'."), 400)
    try:
        turn = answer([text_of(message) for message in messages if message["role"] == "user"])
    except ModelError as problem:
        failure = error(str(problem), "server_error")
        # The status of a stream is sent before the model fails.
        return events([failure]) if body.get("stream") else json_reply(failure, 500)
    message = {"role": "assistant", "content": turn.text, "refusal": None}
    if turn.calls and model == "shop":
        message["tool_calls"] = [tool_call(call) for call in turn.calls]
    prompt, completion = count_tokens(*map(text_of, messages)), count_tokens(turn.text)
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    base = {"id": f"chatcmpl-{next(numbers)}", "created": 1767225600, "model": model, "system_fingerprint": "fp_shop"}
    if body.get("stream"):
        has_usage = (body.get("stream_options") or {}).get("include_usage")
        return events(stream(base, message, usage if has_usage else None))
    choices = [choice("message", message, "stop")]
    return json_reply({**base, "object": "chat.completion", "choices": choices, "usage": usage})


def models(request: Request) -> Reply:
    data = [{"id": model, "object": "model", "created": 1767225600, "owned_by": "shop"} for model in MODELS]
    return json_reply({"object": "list", "data": data})


serve(8000, {"GET /v1/models": models, "POST /v1/chat/completions": complete})

"""A shop agent behind a small API of its own. It needs only Python 3.11.

    python3 server.py 8070

The server is ready when GET http://127.0.0.1:8070/health answers.

    POST /ask {"question": T, "conversation_id": optional}
    200 {"answer": text, "steps": [{"tool", "args", "output", "error"}], "meta": {"conversation_id", "model", "usage"}}
"""

import json
import os
import re
import sys
import time
import uuid
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

conversations: dict[str, list[str]] = defaultdict(list)  # the user's messages by conversation id


def get_order(order_id: str) -> dict:
    return {"order_id": order_id, "status": "shipped"}


def cancel_order(order_id: str, reason: str) -> dict:
    return {"cancelled": order_id}


def get_weather(city: str) -> dict:
    if city == "Oslo":
        raise RuntimeError(f"weather station {city} is offline")
    return {"city": city, "celsius": 18}


TOOLS = {tool.__name__: tool for tool in (get_order, cancel_order, get_weather)}


def decide(question: str, results: list[dict], earlier: list[str]) -> str | list[tuple[str, dict]]:
    """Stand in for a model: return the answer, or the tools to call."""
    if match := re.search(r"Slow hello (\d+)", question):
        time.sleep(0.05)
        return f"Slow hello {match[1]}"
    if "hello" in question.lower():
        return "Hello! How can I help?"
    if match := re.search(r"Where is order (\d+)", question):
        return f"Order {match[1]} has shipped." if results else [("get_order", {"order_id": match[1]})]
    if match := re.search(r"Cancel order (\d+) and check the weather in (\w+)", question):
        if not results:
            return [
                ("cancel_order", {"order_id": match[1], "reason": "customer request"}),
                ("get_weather", {"city": match[2]}),
            ]
        return f"Order {match[1]} is cancelled. It is 18 degrees in {match[2]}."
    if match := re.search(r"Order (\d+) and the weather in (\w+)", question):
        steps = [("get_order", {"order_id": match[1]}), ("get_weather", {"city": match[2]})]
        if len(results) < len(steps):
            return [steps[len(results)]]
        return f"Order {match[1]} has shipped. The weather in {match[2]} is not available."
    if match := re.search(r"Remember the number (\d+)", question):
        return f"I will remember {match[1]}."
    if "Which number" in question:
        match = re.search(r"Remember the number (\d+)", " ".join(earlier))
        return f"The number was {match[1]}." if match else "I know no number."
    if "Fail now" in question:
        raise RuntimeError("the model is not available")
    return "I can look up orders and the weather."


def call_tool(name: str, arguments: dict) -> dict:
    step = {"tool": name, "args": arguments, "output": None, "error": None}
    try:
        return step | {"output": TOOLS[name](**arguments)}
    except Exception as error:
        return step | {"error": str(error)}


def ask(question: str, conversation_id: str) -> dict:
    earlier = conversations[conversation_id]
    steps = []
    model_calls = 1
    while isinstance(reply := decide(question, steps, earlier), list):
        steps += [call_tool(name, arguments) for name, arguments in reply]
        model_calls += 1
    earlier.append(question)
    usage = {"input_tokens": 10 * model_calls, "output_tokens": 5 * model_calls}
    meta = {"conversation_id": conversation_id, "model": "scripted-1", "usage": usage}
    return {"answer": reply, "steps": steps, "meta": meta}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        found = self.path == "/health"
        self.reply(200 if found else 404, {"status": "ok"} if found else {"detail": "Not Found"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path != "/ask":
            return self.reply(404, {"detail": "Not Found"})
        try:
            request = json.loads(body)
        except ValueError:
            return self.reply(
                422, {"detail": [{"loc": ["body"], "msg": "the body is not JSON", "type": "json_invalid"}]}
            )
        if not isinstance(request, dict) or not isinstance(request.get("question"), str):
            detail = [{"loc": ["body", "question"], "msg": "Field required", "type": "missing"}]
            return self.reply(422, {"detail": detail})
        try:
            self.reply(200, ask(request["question"], request.get("conversation_id") or str(uuid.uuid4())))
        except Exception as error:
            self.reply(500, {"detail": str(error)})

    def reply(self, status: int, value: dict) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PORT", "8070"))
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()

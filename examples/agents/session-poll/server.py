"""A shop agent behind an API of sessions and runs, as many companies have one. It needs only Python 3.11.

    python3 server.py 8090

The server is ready when GET http://127.0.0.1:8090/health answers.

    POST /sessions                          201 {"id": "S"} and the cookie `shop_session`
    POST /sessions/S/messages {"text": T}   202 {"run": "R"}; needs the cookie
    GET /runs/R                             200 {"id", "status": "queued" | "running" | "done" | "failed", ...}
"""

import json
import os
import re
import sys
import threading
import time
import uuid
from http import HTTPStatus
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sessions: dict[str, list[str]] = {}  # the user's messages by session id
runs: dict[str, dict] = {}


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
    if "Cancel my order" in question:
        return "Which order? Please send its number."
    if earlier and "Cancel my order" in earlier[-1] and (match := re.fullmatch(r"\s*(\d+)\s*", question)):
        if not results:
            return [("cancel_order", {"order_id": match[1], "reason": "customer request"})]
        return f"Order {match[1]} is cancelled."
    if match := re.search(r"Remember the number (\d+)", question):
        return f"I will remember {match[1]}."
    if "Which number" in question:
        match = re.search(r"Remember the number (\d+)", " ".join(earlier))
        return f"The number was {match[1]}." if match else "I know no number."
    if "Fail now" in question:
        raise RuntimeError("the model is not available")
    return "I can look up orders and the weather."


def call_tool(name: str, arguments: dict) -> dict:
    call = {"name": name, "arguments": arguments}
    try:
        return call | {"result": TOOLS[name](**arguments)}
    except Exception as error:
        return call | {"error": str(error)}


def execute(run: dict, question: str, earlier: list[str]) -> None:
    time.sleep(0.05)
    run["status"] = "running"
    time.sleep(0.05)
    calls = []
    try:
        while isinstance(reply := decide(question, calls, earlier), list):
            calls += [call_tool(name, arguments) for name, arguments in reply]
        run |= {"reply": reply, "tool_calls": calls, "status": "done"}
    except Exception as error:
        run |= {"error": str(error), "status": "failed"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/health":
            return self.reply(HTTPStatus.OK, {"status": "ok"})
        if match := re.fullmatch(r"/runs/([\w-]+)", self.path):
            if run := runs.get(match[1]):
                return self.reply(HTTPStatus.OK, run)
            return self.reply(HTTPStatus.NOT_FOUND, {"error": "unknown run"})
        self.reply(HTTPStatus.NOT_FOUND, {"error": "not found"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/sessions":
            session = str(uuid.uuid4())
            sessions[session] = []
            cookie = f"shop_session={session}; Path=/; HttpOnly; SameSite=Lax"
            return self.reply(HTTPStatus.CREATED, {"id": session}, {"set-cookie": cookie})
        if match := re.fullmatch(r"/sessions/([\w-]+)/messages", self.path):
            return self.add_message(match[1], body)
        self.reply(HTTPStatus.NOT_FOUND, {"error": "not found"})

    def add_message(self, session: str, body: bytes) -> None:
        if session not in sessions:
            return self.reply(HTTPStatus.NOT_FOUND, {"error": "unknown session"})
        cookie = SimpleCookie(self.headers.get("cookie", "")).get("shop_session")
        if cookie is None or cookie.value != session:
            return self.reply(HTTPStatus.FORBIDDEN, {"error": "the cookie of the session is missing"})
        try:
            text = json.loads(body)["text"]
        except (ValueError, KeyError, TypeError):
            return self.reply(HTTPStatus.BAD_REQUEST, {"error": "the body must be JSON with a 'text'"})
        run = {"id": str(uuid.uuid4()), "status": "queued"}
        runs[run["id"]] = run
        earlier = list(sessions[session])
        sessions[session].append(text)
        threading.Thread(target=execute, args=(run, text, earlier)).start()
        self.reply(HTTPStatus.ACCEPTED, {"run": run["id"]}, {"location": f"/runs/{run['id']}"})

    def reply(self, status: HTTPStatus, value: dict, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, header in (headers or {}).items():
            self.send_header(name, header)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PORT", "8090"))
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()

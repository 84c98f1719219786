"""A shop agent with a scripted model, and an HTTP server for it: the common part of the folders that link to it."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

CANNOT_DELETE = "I cannot delete accounts."  # the answer of products without approvals


class ModelError(Exception):
    """The model gives no answer."""


@dataclass
class Call:
    name: str
    arguments: dict
    output: dict | None = None
    error: str | None = None


@dataclass
class Turn:
    """The answer to a message. The calls of a step are made together."""

    text: str
    steps: list[list[Call]] = field(default_factory=list)
    approval: Call | None = None  # a call that a person has to approve first; `text` is the question

    @property
    def calls(self) -> list[Call]:
        return [call for step in self.steps for call in step]


def get_order(order_id: str) -> dict:
    return {"order_id": order_id, "status": "shipped"}


def cancel_order(order_id: str, reason: str) -> dict:
    return {"cancelled": order_id}


def get_weather(city: str) -> dict:
    if city == "Oslo":
        raise RuntimeError(f"weather station {city} is offline")
    return {"city": city, "celsius": 18}


def delete_account(account_id: str) -> dict:
    return {"deleted": account_id}


TOOLS = {tool.__name__: tool for tool in (get_order, cancel_order, get_weather, delete_account)}


def call_tool(name: str, **arguments: str) -> Call:
    try:
        return Call(name, arguments, output=TOOLS[name](**arguments))
    except Exception as error:
        return Call(name, arguments, error=str(error))


def answer(messages: list[str]) -> Turn:
    """Answer the last of the user's messages. Stands in for a model."""
    *earlier, question = messages
    if "Fail now" in question:
        raise ModelError("the model is not available")
    if match := re.search(r"Slow hello \d+", question):
        time.sleep(0.05)
        return Turn(match[0])
    if "hello" in question.lower():
        return Turn("Hello! How can I help?")
    if match := re.search(r"Remember the number (\d+)", question):
        return Turn(f"I will remember {match[1]}.")
    if "Which number" in question:
        match = re.search(r"Remember the number (\d+)", " ".join(earlier))
        return Turn(f"The number was {match[1]}." if match else "I know no number.")
    if match := re.search(r"Cancel order (\d+) and check the weather in (\w+)", question):
        cancel = call_tool("cancel_order", order_id=match[1], reason="customer request")
        weather = call_tool("get_weather", city=match[2])
        return Turn(f"Order {match[1]} is cancelled. {weather_text(weather)}", [[cancel, weather]])
    if match := re.search(r"[Oo]rder (\d+)(?: and the weather in (\w+))?", question):
        turn = Turn(f"Order {match[1]} has shipped.", [[call_tool("get_order", order_id=match[1])]])
        if match[2]:
            weather = call_tool("get_weather", city=match[2])
            turn.steps.append([weather])
            turn.text += f" {weather_text(weather)}"
        return turn
    if match := re.search(r"Delete account (\d+)", question):
        return Turn(f"Delete account {match[1]}?", approval=Call("delete_account", {"account_id": match[1]}))
    return Turn("I can look up orders and the weather.")


def weather_text(call: Call) -> str:
    city = call.arguments["city"]
    return f"The weather in {city} is not available." if call.error else f"It is 18 degrees in {city}."


def after_approval(call: Call, is_approved: bool) -> Turn:
    """Return the rest of the turn after a person has decided."""
    account = call.arguments["account_id"]
    if not is_approved:
        return Turn(f"I did not delete account {account}.")
    return Turn(f"Account {account} is deleted.", [[call_tool(call.name, **call.arguments)]])


def words(text: str) -> list[str]:
    """Split a text into the pieces of a stream."""
    return re.findall(r"\S+\s*", text)


def count_tokens(*texts: str) -> int:
    return len(re.findall(r"\w+", " ".join(texts)))


@dataclass
class Request:
    headers: dict[str, str]  # by lower-case name
    parameters: dict[str, str]  # the parameters of the path
    body: dict


@dataclass
class Reply:
    chunks: Iterable[str]
    content_type: str = "application/json"
    status: int = 200


def json_reply(value: object, status: int = 200) -> Reply:
    return Reply([json.dumps(value)], status=status)


def events(values: Iterable[dict | str], named: bool = False) -> Reply:
    """Return a stream of server-sent events; `named` ones repeat their type as the name of the event."""

    def event(value: dict | str) -> str:
        name = f"event: {value['type']}\n" if named else ""
        return f"{name}data: {value if isinstance(value, str) else json.dumps(value)}\n\n"

    return Reply(map(event, values), "text/event-stream; charset=utf-8")


def serve(default_port: int, routes: dict[str, Callable[[Request], Reply]]) -> None:
    """Serve routes such as "POST /conversations/{id}" at the port in the first argument."""

    def pattern(route: str) -> str:
        return re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # one packet for the headers and the first chunk

        def do_GET(self) -> None:
            length = int(self.headers.get("content-length", 0))
            try:
                body = json.loads(self.rfile.read(length) or b"{}")
            except ValueError:
                body = {}
            reply = json_reply({"error": "not found"}, 404)
            for route, handle in routes.items():
                if match := re.fullmatch(pattern(route), f"{self.command} {urlsplit(self.path).path}"):
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    parameters = {name: unquote(value) for name, value in match.groupdict().items()}
                    reply = handle(Request(headers, parameters, body if isinstance(body, dict) else {}))
                    break
            self.send_response(reply.status)
            self.send_header("content-type", reply.content_type)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for chunk in filter(None, reply.chunks):
                data = chunk.encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            pass

    port = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PORT", default_port))
    print(f"http://127.0.0.1:{port}", flush=True)
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()

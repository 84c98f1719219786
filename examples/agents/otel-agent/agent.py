"""A shop agent that answers only {"response": text} and tells what it did in OpenTelemetry traces.

    python3 -m venv .venv
    .venv/bin/pip install -r requirements.txt
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 .venv/bin/python agent.py 8080

The server is ready when GET http://127.0.0.1:8080/health answers. Ask with
POST /chat {"message": "Where is order 1042?", "session_id": "optional"}; a `traceparent` header is continued.

How spans are exported is chosen by the variable TRACE_EXPORT, or by a suffix of one message, as in
"Where is order 1042? [export: late 500]":

    at-once           all spans of the request in one export, before the reply (default)
    late MS           all spans in one export, MS milliseconds after the reply
    twice             all spans in one export, sent twice
    children-first    an export for each span, in the order in which spans end
    never             no export
"""

import json
import os
import re
import sys
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator


class ExportByMode(SpanProcessor):
    """Collects the spans of a request and exports them when its first span ends."""

    def __init__(self, exporter: OTLPSpanExporter) -> None:
        self.exporter = exporter
        self.ended: dict[int, list[ReadableSpan]] = defaultdict(list)

    def on_end(self, span: ReadableSpan) -> None:
        trace_id = span.context.trace_id
        self.ended[trace_id].append(span)
        if span.parent is not None and not span.parent.is_remote:
            return
        spans = self.ended.pop(trace_id)
        mode, _, delay = span.attributes["shop.trace_export"].partition(" ")
        if mode == "children-first":
            for ended in spans:
                self.exporter.export([ended])
        elif mode == "late":
            threading.Timer(int(delay) / 1000, self.exporter.export, [spans]).start()
        elif mode == "twice":
            self.exporter.export(spans)
            self.exporter.export(spans)
        elif mode == "at-once":
            self.exporter.export(spans)
        elif mode != "never":
            raise ValueError(f"TRACE_EXPORT: unknown mode '{mode}'")


provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
provider.add_span_processor(ExportByMode(OTLPSpanExporter()))
tracer = trace.get_tracer("shop", tracer_provider=provider)
sessions: dict[str, list[str]] = defaultdict(list)


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


def call_model(question: str, results: list[dict], earlier: list[str]) -> str | list[tuple[str, dict]]:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted-1",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": question}]}]),
    }
    with tracer.start_as_current_span("chat scripted-1", kind=SpanKind.CLIENT, attributes=attributes) as span:
        reply = decide(question, results, earlier)
        if isinstance(reply, str):
            finish, parts = "stop", [{"type": "text", "content": reply}]
        else:
            finish = "tool_call"
            parts = [{"type": "tool_call", "name": name, "arguments": arguments} for name, arguments in reply]
        output = [{"role": "assistant", "parts": parts, "finish_reason": finish}]
        span.set_attribute("gen_ai.output.messages", json.dumps(output))
        span.set_attribute("gen_ai.response.model", "scripted-1")
        span.set_attribute("gen_ai.usage.input_tokens", 10 * (1 + len(results)))
        span.set_attribute("gen_ai.usage.output_tokens", 5)
        return reply


def call_tool(call_id: str, name: str, arguments: dict) -> dict:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.call.arguments": json.dumps(arguments),
    }
    with tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes) as span:
        try:
            result = TOOLS[name](**arguments)
        except Exception as error:
            span.record_exception(error)
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, str(error)))
            return {"error": str(error)}
        span.set_attribute("gen_ai.tool.call.result", json.dumps(result))
        return result


def answer(message: str, session_id: str | None, headers: dict[str, str]) -> str:
    mode = os.environ.get("TRACE_EXPORT", "at-once")
    if match := re.search(r"\s*\[export: ([^\]]+)\]$", message):
        message, mode = message[: match.start()], match[1]
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "scripted",
        "gen_ai.agent.name": "shop",
        "shop.trace_export": mode,
    }
    if session_id:
        attributes["gen_ai.conversation.id"] = session_id
    context = TraceContextTextMapPropagator().extract(headers)
    with tracer.start_as_current_span("invoke_agent shop", context=context, attributes=attributes):
        earlier = sessions[session_id] if session_id else []
        results = []
        while isinstance(reply := call_model(message, results, earlier), list):
            results += [
                call_tool(f"call_{len(results)}_{index}", name, arguments)
                for index, (name, arguments) in enumerate(reply)
            ]
        earlier.append(message)
        return reply


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        found = self.path == "/health"
        self.reply(200 if found else 404, {"status": "ok"} if found else {"error": "not found"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path != "/chat":
            return self.reply(404, {"error": "not found"})
        try:
            request = json.loads(body)
            message, session_id = request["message"], request.get("session_id")
        except (ValueError, KeyError, TypeError):
            return self.reply(400, {"error": "the body must be JSON with a 'message'"})
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            self.reply(200, {"response": answer(message, session_id, headers)})
        except Exception as error:
            self.reply(500, {"error": str(error)})

    def reply(self, status: int, value: dict) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PORT", "8080"))
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()

"""A shop agent on LangGraph, with a scripted model in place of a real one.

    python3 -m venv .venv
    .venv/bin/pip install -r requirements.txt
    export LANGGRAPH_CLI_NO_ANALYTICS=1 LANGSMITH_TRACING=false LANGGRAPH_DISABLE_FILE_PERSISTENCE=true
    .venv/bin/langgraph dev --no-browser --no-reload --n-jobs-per-worker 10 --port 2024

The server is ready when GET http://127.0.0.1:2024/ok answers {"ok":true}. The assistant's id is `shop`.
`langgraph dev` creates the folder .langgraph_api next to this file.
"""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt


@tool
def get_order(order_id: str) -> dict:
    """Look up the status of an order."""
    return {"order_id": order_id, "status": "shipped"}


@tool
def cancel_order(order_id: str, reason: str) -> dict:
    """Cancel an order."""
    return {"cancelled": order_id}


@tool
def get_weather(city: str) -> dict:
    """Get the current temperature in a city."""
    if city == "Oslo":
        raise RuntimeError(f"weather station {city} is offline")
    return {"city": city, "celsius": 18}


@tool
def delete_account(account_id: str) -> dict:
    """Delete a customer's account, after a person has approved it."""
    if not interrupt(f"Delete account {account_id}?"):
        return {"deleted": None}
    return {"deleted": account_id}


TOOLS = [get_order, cancel_order, get_weather, delete_account]


class ScriptedModel(BaseChatModel):
    """Chooses its replies by regular expressions. Replace it with a real chat model."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "ScriptedModel":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=next_message(messages))])

    def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        reply = next_message(messages)
        words = re.findall(r"\S+\s*", reply.content)
        for word in words:
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        calls = [
            {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": index}
            for index, call in enumerate(reply.tool_calls)
        ]
        yield ChatGenerationChunk(
            message=AIMessageChunk(content="", tool_call_chunks=calls, usage_metadata=reply.usage_metadata)
        )


def next_message(messages: list[BaseMessage]) -> AIMessage:
    last = max(index for index, message in enumerate(messages) if isinstance(message, HumanMessage))
    question = messages[last].text
    results = [message for message in messages[last:] if isinstance(message, ToolMessage)]
    earlier = " ".join(message.text for message in messages[:last])
    reply = decide(question, results, earlier)

    calls = []
    if isinstance(reply, list):
        calls = [
            {"name": name, "args": args, "id": f"call_{len(messages)}_{index}"}
            for index, (name, args) in enumerate(reply)
        ]
        reply = ""
    tokens = {"input_tokens": 10 * len(messages), "output_tokens": 5}
    usage = {**tokens, "total_tokens": sum(tokens.values())}
    return AIMessage(content=reply, tool_calls=calls, usage_metadata=usage)


def decide(question: str, results: list[ToolMessage], earlier: str) -> str | list[tuple[str, dict]]:
    """Return the answer, or the tools to call."""
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
        match = re.search(r"Remember the number (\d+)", earlier)
        return f"The number was {match[1]}." if match else "I know no number."
    if match := re.search(r"Delete account (\d+)", question):
        if not results:
            return [("delete_account", {"account_id": match[1]})]
        deleted = json.loads(results[-1].text)["deleted"]
        return f"Account {match[1]} is deleted." if deleted else f"I did not delete account {match[1]}."
    if "Fail now" in question:
        raise RuntimeError("the model is not available")
    return "I can look up orders and the weather."


model = ScriptedModel().bind_tools(TOOLS)


def call_model(state: MessagesState) -> dict:
    return {"messages": [model.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("model", call_model)
builder.add_node("tools", ToolNode(TOOLS, handle_tool_errors=True))
builder.add_edge(START, "model")
builder.add_conditional_edges("model", tools_condition)
builder.add_edge("tools", "model")
graph = builder.compile()

"""A shop agent served by LangServe, with a scripted model in place of a real one.

    python3 -m venv .venv
    .venv/bin/pip install -r requirements.txt
    LANGSMITH_TRACING=false .venv/bin/python server.py 8000

The server is ready when GET http://127.0.0.1:8000/docs answers. The agent is at POST /agent/invoke.
"""

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import uvicorn
from fastapi import FastAPI
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.tools import ToolException, tool
from langserve import add_routes
from pydantic import BaseModel, Field


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
        raise ToolException(f"weather station {city} is offline")
    return {"city": city, "celsius": 18}


get_weather.handle_tool_error = True  # give the model the error; otherwise it ends the run
TOOLS = [get_order, cancel_order, get_weather]


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
    if "Fail now" in question:
        raise RuntimeError("the model is not available")
    return "I can look up orders and the weather."


prompt = ChatPromptTemplate.from_messages(
    [
        MessagesPlaceholder("chat_history", optional=True),
        ("human", "{input}"),
        MessagesPlaceholder("agent_scratchpad"),
    ]
)
agent = create_tool_calling_agent(ScriptedModel(), TOOLS, prompt)
executor = AgentExecutor(agent=agent, tools=TOOLS, return_intermediate_steps=True)


class Input(BaseModel):
    input: str
    chat_history: list[HumanMessage | AIMessage] = Field(default_factory=list)


class Output(BaseModel):
    output: Any
    intermediate_steps: Any = None


app = FastAPI(title="Shop agent")
add_routes(app, executor.with_types(input_type=Input, output_type=Output), path="/agent")

if __name__ == "__main__":
    port = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PORT", "8000"))
    uvicorn.run(app, host="127.0.0.1", port=port)

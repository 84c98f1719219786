"""A shop agent on Google's Agent Development Kit (ADK), with a scripted model in place of a real one.

    python3 -m venv .venv
    .venv/bin/pip install -r requirements.txt
    .venv/bin/adk api_server --no_use_local_storage --port 8000 .

Start it in the folder above this one: ADK takes each subfolder for an app, and this one is called `shop`.
The server is ready when GET http://127.0.0.1:8000/health answers {"status":"ok"}.
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.tools import BaseTool, ToolContext
from google.genai import types


def get_order(order_id: str) -> dict:
    """Look up the status of an order."""
    return {"order_id": order_id, "status": "shipped"}


def cancel_order(order_id: str, reason: str) -> dict:
    """Cancel an order."""
    return {"cancelled": order_id}


def get_weather(city: str) -> dict:
    """Get the current temperature in a city."""
    if city == "Oslo":
        raise RuntimeError(f"weather station {city} is offline")
    return {"city": city, "celsius": 18}


def delete_account(account_id: str, tool_context: ToolContext) -> dict:
    """Delete a customer's account, after a person has approved it."""
    confirmation = tool_context.tool_confirmation
    if confirmation is None:
        tool_context.request_confirmation(hint=f"Delete account {account_id}?")
        return {"status": "waiting for approval"}
    return {"deleted": account_id if confirmation.confirmed else None}


def report_tool_error(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, error: Exception) -> dict:
    """Give the model the error of a tool. Without this callback, ADK ends the run."""
    return {"error": str(error)}


class ScriptedModel(BaseLlm):
    """Chooses its replies by regular expressions. Replace it with the name of a real model."""

    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        contents = llm_request.contents
        last = max(index for index, content in enumerate(contents) if content.role == "user" and text_of(content))
        question = text_of(contents[last])
        results = [
            part.function_response.response
            for content in contents[last + 1 :]
            for part in content.parts
            if part.function_response
        ]
        if "Slow hello" in question:
            await asyncio.sleep(0.05)
        reply = decide(question, results, " ".join(map(text_of, contents[:last])))

        if isinstance(reply, str):
            if stream:
                for word in re.findall(r"\S+\s*", reply):
                    yield LlmResponse(content=types.ModelContent(word), partial=True)
            parts = [types.Part(text=reply)]
        else:
            parts = [types.Part.from_function_call(name=name, args=args) for name, args in reply]
        yield LlmResponse(
            content=types.ModelContent(parts),
            partial=False,
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=10 * len(contents),
                candidates_token_count=5,
                total_token_count=10 * len(contents) + 5,
            ),
        )


def text_of(content: types.Content) -> str:
    return "".join(part.text or "" for part in content.parts)


def decide(question: str, results: list[dict], earlier: str) -> str | list[tuple[str, dict]]:
    """Return the answer, or the tools to call."""
    if match := re.search(r"Slow hello (\d+)", question):
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
        if "deleted" not in results[-1]:
            return f"Delete account {match[1]}?"
        deleted = results[-1]["deleted"]
        return f"Account {match[1]} is deleted." if deleted else f"I did not delete account {match[1]}."
    if "Fail now" in question:
        raise RuntimeError("the model is not available")
    return "I can look up orders and the weather."


root_agent = LlmAgent(
    name="shop",
    model=ScriptedModel(),
    instruction="Answer questions about orders and the weather.",
    tools=[get_order, cancel_order, get_weather, delete_account],
    on_tool_error_callback=report_tool_error,
)

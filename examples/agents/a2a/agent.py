"""A shop agent that speaks the Agent2Agent (A2A) protocol, with a scripted model in place of a real one.

    python3 -m venv .venv
    .venv/bin/pip install -r requirements.txt
    .venv/bin/python agent.py 9999

The server is ready when GET http://127.0.0.1:9999/.well-known/agent-card.json answers. It accepts versions 1.0 and
0.3 of the protocol at http://127.0.0.1:9999/.
"""

import asyncio
import os
import re
import sys
from collections import defaultdict

import uvicorn
from a2a.helpers import new_task, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, TaskState
from starlette.applications import Starlette


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


def run_tool(name: str, arguments: dict) -> dict:
    try:
        return TOOLS[name](**arguments)
    except Exception as error:
        return {"error": str(error)}


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
        return f"Account {match[1]} is deleted." if results else [("delete_account", {"account_id": match[1]})]
    if "Fail now" in question:
        raise RuntimeError("the model is not available")
    return "I can look up orders and the weather."


class ShopExecutor(AgentExecutor):
    def __init__(self) -> None:
        self.earlier: dict[str, list[str]] = defaultdict(list)  # the user's messages by context id

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        question = context.get_user_input()
        earlier = self.earlier[context.context_id]
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)

        if context.current_task:  # a person answers "Delete account N?"
            question = earlier[-1]
            account = re.search(r"\d+", question)[0]
            if context.get_user_input().strip().lower() != "yes":
                await self.finish(updater, f"I did not delete account {account}.")
                return
        else:
            earlier.append(question)
            reply = decide(question, [], " ".join(earlier[:-1]))
            if isinstance(reply, str) and "Slow" not in question:  # no task is needed: answer with a message
                await event_queue.enqueue_event(new_text_message(reply, context_id=context.context_id))
                return
            task = new_task(context.task_id, context.context_id, TaskState.TASK_STATE_SUBMITTED)
            task.history.append(context.message)
            await event_queue.enqueue_event(task)
            if match := re.search(r"Delete account (\d+)", question):
                await updater.requires_input(updater.new_agent_message([new_text_part(f"Delete account {match[1]}?")]))
                return

        await updater.start_work(updater.new_agent_message([new_text_part("One moment, please.")]))
        if "Slow" in question:
            await asyncio.sleep(0.05)
        results = []
        while isinstance(reply := decide(question, results, ""), list):
            results += [run_tool(name, arguments) for name, arguments in reply]
        await self.finish(updater, reply)

    async def finish(self, updater: TaskUpdater, answer: str) -> None:
        words = re.findall(r"\S+\s*", answer)
        for index, word in enumerate(words):
            await updater.add_artifact(
                [new_text_part(word)],
                artifact_id="answer",
                append=index > 0,
                last_chunk=index == len(words) - 1,
            )
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main() -> None:
    port = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PORT", "9999"))
    url = f"http://127.0.0.1:{port}/"
    card = AgentCard(
        name="shop",
        description="Answers questions about orders and the weather.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0"),
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="0.3"),
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="orders", name="Orders", description="Finds and cancels orders.", tags=["orders"])],
    )
    handler = DefaultRequestHandler(agent_executor=ShopExecutor(), task_store=InMemoryTaskStore(), agent_card=card)
    routes = create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True)
    uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port)


if __name__ == "__main__":
    main()

"""A shop agent as plain Python functions. It needs only Python 3.11 and no server.

    python3 agent.py "Where is order 1042?"

`answer` is a function, `answer_async` a coroutine function, and `converse` takes the messages of a conversation.
Each returns {"response": text, "toolCalls": [{"name", "arguments", "result" or "error"}]}.
"""

import asyncio
import json
import re
import sys
import time


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
    call = {"name": name, "arguments": arguments}
    try:
        return call | {"result": TOOLS[name](**arguments)}
    except Exception as error:
        return call | {"error": str(error)}


def converse(messages: list[dict]) -> dict:
    """Answer the last of `messages`, each {"role": "user" or "assistant", "content": text}."""
    *earlier, question = [message["content"] for message in messages]
    calls = []
    while isinstance(reply := decide(question, calls, earlier), list):
        calls += [call_tool(name, arguments) for name, arguments in reply]
    return {"response": reply, "toolCalls": calls}


def answer(message: str) -> dict:
    return converse([{"role": "user", "content": message}])


async def answer_async(message: str) -> dict:
    return await asyncio.to_thread(answer, message)


if __name__ == "__main__":
    print(json.dumps(answer(sys.argv[1])))

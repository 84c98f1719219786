"""A mock model for the litellm proxy that calls a tool for each message and repeats its result.

For the message `get-sum {"a": 2, "b": 3}` it calls get-sum with these arguments.
"""

import litellm
from litellm import CustomLLM

USAGE = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}


class ObedientModel(CustomLLM):
    async def acompletion(self, model, messages, **_):
        last = messages[-1]
        if last["role"] == "tool":
            reason, message = "stop", {"role": "assistant", "content": f"the tool said: {last['content']}"}
        else:
            name, _, arguments = last["content"].partition(" ")
            function = {"name": name, "arguments": arguments or "{}"}
            call = {"id": "call_1", "type": "function", "function": function}
            reason, message = "tool_calls", {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "finish_reason": reason, "message": message}
        return litellm.ModelResponse(model=model, choices=[choice], usage=USAGE)


obedient = ObedientModel()

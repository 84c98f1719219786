import json


def _sample(trace):
    text = _text(_output(trace))
    text = json.dumps(text) if isinstance(text, (dict, list)) else text
    calls = [call for step in trace.get("steps") or [] for call in step.get("tool_calls") or []]
    tools = [{"type": "function", "function": {"name": call.get("name"), "arguments": json.dumps(call.get("arguments"))}} for call in calls]
    try:
        parsed = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        parsed = None
    message = {"role": "assistant", "content": text, "tool_calls": tools}
    return {"output_text": text, "output_json": parsed, "output_tools": tools, "choices": [{"message": message}]}


def _item(trace, context):
    return _Fields(context.reference, {"input": _text(_input(trace)), **context.params})

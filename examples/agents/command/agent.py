"""An agent as a program: it reads a request from each line of its input and writes a reply to a line of its output.

    karat run

With `"keepAlive": true`, karat starts it once and not for each case.
"""

import json
import sys

from shop import ModelError, answer

for line in sys.stdin:
    request = json.loads(line)
    earlier = [message["content"] for message in request.get("messages", []) if message["role"] == "user"]
    try:
        turn = answer([*earlier, request["message"]])
    except ModelError as error:
        sys.exit(str(error))  # affects only this case: karat starts the program again
    calls = [
        {"name": call.name, "params": call.arguments, "success": call.error is None, "result": call.output}
        for call in turn.calls
    ]
    print(json.dumps({"response": turn.text, "toolCalls": calls}), flush=True)

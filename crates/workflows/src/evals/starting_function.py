import json
from typing import Any


def eval_starting_function(trace: dict) -> tuple[bool, str]:
    """Passes when no step went wrong and the last one answers."""
    steps = trace.get("steps") or []
    if not steps:
        return False, "the trace has no steps"

    for number, step in enumerate(steps, start=1):
        if step.get("error"):
            return False, f"step {number} went wrong: {step['error']}"

    answer = text_of(steps[-1].get("output"))
    if not answer.strip():
        return False, "the last step says nothing"

    return True, f"answers after {len(steps)} steps"


def text_of(output: Any) -> str:
    """Returns what a step says, whatever shape it has."""
    if output is None:
        return ""
    if isinstance(output, dict) and "response" in output:
        output = output["response"]
    return output if isinstance(output, str) else json.dumps(output)

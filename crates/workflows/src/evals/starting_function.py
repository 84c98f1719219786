import json
from typing import Any


def eval_starting_function(trace: dict) -> tuple[bool, str]:
    """Passes if no step failed and the last step has an answer."""
    steps = trace.get("steps") or []
    if not steps:
        return False, "the trace has no steps"

    for number, step in enumerate(steps, start=1):
        if step.get("error"):
            return False, f"step {number} failed: {step['error']}"

    answer = text_of(steps[-1].get("output"))
    if not answer.strip():
        return False, "the last step has no answer"

    return True, f"answered in step {len(steps)}"


def text_of(output: Any) -> str:
    """Returns the output of a step as text."""
    if output is None:
        return ""
    if isinstance(output, dict) and "response" in output:
        output = output["response"]
    return output if isinstance(output, str) else json.dumps(output)

def _promptfoo_context(trace, context):
    case = context.case or {}
    params = dict(context.params)
    if context.reference is not None:
        params.setdefault("expected", context.reference)
    return {
        "prompt": _input(trace),
        "vars": params,
        "test": {"description": case.get("description", ""), "vars": params, "metadata": {}},
        "config": params,
        "logProbs": None,
        "provider": None,
        "providerResponse": {"output": _output(trace)},
    }


_verdict_of_value = _verdict


def _verdict(value):
    """Passes a number above 0, and accepts keys in snake case."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return {"pass": value > 0, "score": value}
    if isinstance(value, dict) and "pass" not in value and "pass_" not in value and value.get("score") is not None:
        return {"pass": value["score"] > 0, "score": value["score"], "reason": value.get("reason") or ""}
    return _verdict_of_value(value)

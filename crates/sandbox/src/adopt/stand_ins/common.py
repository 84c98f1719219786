# Converts karat's trace and context to the evaluator's arguments.
def _raw_input(trace):
    steps = trace.get("steps") or [{}]
    return steps[0].get("input")


def _raw_output(trace):
    steps = trace.get("steps") or [{}]
    return steps[-1].get("output")


def _text(value):
    """Returns the text of an input or output: the value itself, or its usual key."""
    if isinstance(value, dict):
        for key in ("response", "message", "content", "text", "output", "input"):
            if isinstance(value.get(key), str):
                return value[key]
    return value


def _input(trace):
    return _text(_raw_input(trace))


def _output(trace):
    return _text(_raw_output(trace))


class _Fields(dict):
    """A dict that returns the text of the whole value for unknown keys, since traces do not use the evaluator's keys."""

    def __init__(self, value=None, more=None):
        super().__init__(value if isinstance(value, dict) else {})
        self.update(more or {})
        self.text = _text(value)

    def __missing__(self, key):
        if self.text is None or isinstance(self.text, dict):
            raise KeyError(key)
        return self.text

    def get(self, key, default=None):
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key):
        return self.get(key) is not None

    def __bool__(self):
        return self.text is not None

    def __str__(self):
        return self.text if isinstance(self.text, str) else repr(dict(self))


class _Package:
    """Replaces a module of the framework, with the stand-ins of this file as members, or a member without a stand-in."""

    def __getattr__(self, name):
        return _MEMBERS.get(name, self)

    def __call__(self, *_, **__):
        raise NotImplementedError("this part of the framework has no stand-in")


_MEMBERS = {}
_PASS_LABELS = ("yes", "pass", "passed", "correct", "true")
_FAIL_LABELS = ("no", "fail", "failed", "incorrect", "false")


def _label(text):
    """Returns the verdict of a label, or None if it is not one of the usual words."""
    word = text.strip().lower()
    return True if word in _PASS_LABELS else False if word in _FAIL_LABELS else None


def _first_set(value, *names):
    """Returns the first of the named members that is set."""
    read = value.get if isinstance(value, dict) else lambda name: getattr(value, name, None)
    return next((read(name) for name in names if read(name) is not None), None)


def _await_result(value):
    """Returns the result of a coroutine, which must not await external calls."""
    if not hasattr(value, "send"):
        return value
    try:
        value.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("the evaluator awaits an external call, such as a model")


def _verdict(value):
    """Converts the evaluator's result to a form that karat accepts."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        passed = _label(value)
        return value if passed is None else {"pass": passed, "reason": value}
    if isinstance(value, (list, tuple)):
        return _combine(value)
    reason = _first_set(value, "reason", "comment", "explanation", "rationale")
    if isinstance(value, dict) and "results" in value:
        return _combine(value["results"])
    passed = _first_set(value, "pass", "passed", "pass_")
    score = _first_set(value, "score", "value", "label")
    if isinstance(score, str):
        score = _label(score)
    if passed is None and isinstance(score, bool):
        passed, score = score, None
    if isinstance(value, dict) and not any(name in value for name in ("pass", "passed", "pass_", "score", "value", "label")):
        return value
    return {"pass": passed, "score": score, "reason": "" if reason is None else str(reason)}


def _combine(values):
    """Combines several results: all must pass, and the lowest score counts."""
    results = [_verdict(value) for value in values if value is not None]
    if not results:
        return None
    passed, scores, reasons = [], [], []
    for result in results:
        result = result if isinstance(result, dict) else {"score": result}
        score, reason = result.get("score"), result.get("reason")
        verdict = result.get("pass")
        if verdict is None and score is not None:
            verdict = score if isinstance(score, bool) else score >= KARAT_THRESHOLD
        passed.append(verdict)
        scores += [] if score is None or isinstance(score, bool) else [score]
        reasons += [reason] if reason else []
    passed = [verdict for verdict in passed if verdict is not None]
    return {
        "pass": all(passed) if passed else None,
        "score": min(scores) if scores else None,
        "reason": "; ".join(reasons),
    }

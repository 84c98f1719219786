# Converts karat's trace and context to the evaluator's arguments.
def _raw_input(trace):
    steps = trace.get("steps") or [{}]
    return steps[0].get("input")


def _raw_output(trace):
    steps = trace.get("steps") or [{}]
    return steps[-1].get("output")


# The keys of karat's own form: the text, and the value if it is not text.
_OWN_INPUT = {"message", "messages", "value"}
_OWN_OUTPUT = {"response", "reasoning", "value", "toolCalls"}


def _value(raw, text_key, own):
    """Returns the text or value of karat's own form; any other input or output stays as it is."""
    if not isinstance(raw, dict) or text_key not in raw or not raw.keys() <= own:
        return raw
    return raw[text_key] if raw.get("value") is None else raw["value"]


def _input(trace):
    return _value(_raw_input(trace), "message", _OWN_INPUT)


def _output(trace):
    return _value(_raw_output(trace), "response", _OWN_OUTPUT)


def _text(value):
    """Returns the text of an input or output: the value itself, or its usual key."""
    if isinstance(value, dict):
        for key in ("response", "message", "content", "text", "output", "input"):
            if isinstance(value.get(key), str):
                return value[key]
    return value


# Names that evaluators usually give to a text. Other names, such as `error`, mean something else.
_TEXT_KEYS = set(
    "actual answer completion content expected expected_answer expected_output expected_response final_answer "
    "ground_truth input label message output output_text prediction prompt query question reference "
    "reference_answer reply response result target text user_input".split()
)


class _Fields(dict):
    """An object. If it is only a text, a key that is read without a default gives it, since a trace does not know the
    evaluator's names."""

    def __init__(self, value=None, more=None):
        super().__init__(value if isinstance(value, dict) else {})
        self.text = value
        if isinstance(value, dict):
            values = list(value.values())
            self.text = values[0] if len(values) == 1 and isinstance(values[0], str) else None
        self.update(more or {})

    def __missing__(self, key):
        if self.text is None:
            raise KeyError(key)
        return self.text

    def get(self, key, *default):
        if key in self or default or key not in _TEXT_KEYS:
            return super().get(key, *default)
        return self.text

    def __bool__(self):
        return len(self) > 0 or self.text is not None

    def __str__(self):
        return self.text if isinstance(self.text, str) else repr(dict(self))


def _input_fields(trace, context):
    return _own_fields(_raw_input(trace), _input(trace), context.params)


def _output_fields(trace):
    return _own_fields(_raw_output(trace), _output(trace))


def _own_fields(raw, value, more=None):
    """Returns the object of an input or output; karat's own form keeps its keys."""
    fields = _Fields(value, more)
    if isinstance(raw, dict) and not isinstance(value, dict):
        fields.update({key: part for key, part in raw.items() if key not in fields})
    return fields


def _options(context, *names):
    """Returns the arguments of a constructor that the entry's parameters fill."""
    return {name: context.params[name] for name in names if name in context.params}


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
    reason = _first_set(value, "reason", "reasoning", "comment", "explanation", "rationale")
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

# Stand-ins for classes of braintrust and autoevals.
class Score:
    def __init__(self, name=None, score=None, metadata=None, error=None, **_):
        self.name, self.score, self.metadata, self.error = name, score, metadata or {}, error

    @property
    def reason(self):
        return self.metadata.get("rationale") or self.metadata.get("reason")


class Scorer:
    def _name(self):
        return type(self).__name__

    def __call__(self, output, expected=None, **rest):
        return self._run_eval_sync(output, expected, **rest)


class _Spans(list):
    """A list that can also be awaited."""

    def __await__(self):
        return self
        yield


class _Span(dict):
    def __init__(self, type, name, input, output, error=None):
        attributes = {"name": name, "type": type}
        super().__init__(span_attributes=attributes, input=input, output=output, error=error)
        self.span_attributes, self.name, self.type = attributes, name, type
        self.input, self.output, self.error, self.metadata, self.metrics = input, output, error, {}, {}


class _Trace:
    """The spans of a trace: one per model call, and one per tool call."""

    def __init__(self, trace):
        self.spans, self.thread = _Spans(), _Spans()
        for step in trace.get("steps") or []:
            question = _value(step.get("input"), "message", _OWN_INPUT)
            answer = _value(step.get("output"), "response", _OWN_OUTPUT)
            self.spans.append(_Span("llm", "model", question, answer, step.get("error")))
            for call in step.get("tool_calls") or []:
                name, error = call.get("name"), call.get("error")
                self.spans.append(_Span("tool", name, call.get("arguments"), call.get("result"), error))
            messages = (("user", question), ("assistant", answer))
            self.thread += [{"role": role, "content": content} for role, content in messages if content]

    def get_spans(self, span_type=None):
        wanted = [span_type] if isinstance(span_type, str) else span_type
        return _Spans(span for span in self.spans if wanted is None or span.type in wanted)

    def get_thread(self):
        return _Spans(self.thread)


SyncScorer = ScorerWithPartial = Scorer
_MEMBERS.update(Score=Score, Scorer=Scorer)

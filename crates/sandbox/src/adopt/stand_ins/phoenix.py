# Stand-ins for classes and decorators of phoenix.
class EvaluationResult:
    def __init__(self, score=None, label=None, explanation=None, metadata=None, **_):
        self.score, self.label, self.explanation, self.metadata = score, label, explanation, metadata


class Score(EvaluationResult):
    def __init__(self, name=None, score=None, label=None, explanation=None, metadata=None, **rest):
        super().__init__(score, label, explanation, metadata)
        self.name = name


class _Example:
    """An example of a data set: the input, the expected output and the metadata."""

    def __init__(self, trace, context):
        self.id, self.metadata = "example", dict(context.params)
        self.input, self.output = _input_fields(trace, context), _Fields(context.reference)


class CodeEvaluator:
    """The base of evaluators that are classes."""


Evaluator = CodeEvaluator


def create_evaluator(*arguments, **_):
    return arguments[0] if arguments and callable(arguments[0]) else lambda function: function


_MEMBERS.update(EvaluationResult=EvaluationResult, Score=Score, create_evaluator=create_evaluator)
_MEMBERS.update(Example=_Example, CodeEvaluator=CodeEvaluator, Evaluator=Evaluator)
Example = _Example
_verdict_of_value = _verdict


def _verdict(value):
    """Treats a tuple as one result: its number is the score, its first string the label and its last the explanation."""
    if isinstance(value, tuple):
        scores = [part for part in value if isinstance(part, (bool, int, float))]
        texts = [part for part in value if isinstance(part, str)]
        return _verdict_of_value(EvaluationResult(scores[0] if scores else None, texts[0] if texts else None, texts[-1] if texts else None))
    return _verdict_of_value(value)

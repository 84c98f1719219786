# Stand-ins for classes of langsmith and openevals.
class _Run:
    def __init__(self, trace, context):
        self.id, self.name, self.error, self.extra, self.run_type = "run", "run", None, {}, "chain"
        self.inputs = _input_fields(trace, context)
        self.outputs = _output_fields(trace)
        self.child_runs = []


class _Example:
    def __init__(self, trace, context):
        self.id, self.metadata = "example", dict(context.params)
        self.inputs = _input_fields(trace, context)
        self.outputs = _Fields(context.reference)


class EvaluationResult:
    def __init__(self, *, key=None, score=None, value=None, comment=None, **_):
        self.key, self.score, self.value, self.comment = key, score, value, comment


class EvaluatorResult(dict):
    """A typed dictionary of openevals."""


class EvaluationResults(dict):
    """Several results, under the key `results`."""


def _run_evaluator(run_name=None, scorer=None, feedback_key=None, ls_framework=None, **arguments):
    result = scorer(**arguments)
    score, comment = result if isinstance(result, tuple) else (result, None)
    return EvaluatorResult(key=feedback_key, score=score, comment=comment)


async def _arun_evaluator(**arguments):
    return _run_evaluator(**arguments)


Run, Example = _Run, _Example


def run_evaluator(function):
    return function


def traceable(*functions, **_):
    return functions[0] if functions else lambda function: function


_MEMBERS.update(Run=Run, Example=Example, EvaluationResult=EvaluationResult, EvaluationResults=EvaluationResults)
_MEMBERS.update(EvaluatorResult=EvaluatorResult, run_evaluator=run_evaluator, traceable=traceable)

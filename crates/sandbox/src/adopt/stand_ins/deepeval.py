# Stand-ins for classes of deepeval.
class ToolCall:
    def __init__(self, name=None, input_parameters=None, output=None, description=None, reasoning=None):
        self.name, self.input_parameters, self.output = name, input_parameters, output
        self.description, self.reasoning = description, reasoning


class LLMTestCase:
    def __init__(self, input=None, actual_output=None, expected_output=None, **more):
        self.input, self.actual_output, self.expected_output = input, actual_output, expected_output
        self.context, self.retrieval_context = more.get("context"), more.get("retrieval_context")
        self.tools_called, self.expected_tools = more.get("tools_called"), more.get("expected_tools")
        self.metadata = self.additional_metadata = more.get("metadata", more.get("additional_metadata"))
        self.name, self.tags = more.get("name"), more.get("tags")
        self.multimodal, self.custom_column_key_values = False, None
        self.comments = self.token_cost = self.completion_time = None


class LLMTestCaseParams:
    INPUT, ACTUAL_OUTPUT, EXPECTED_OUTPUT = "input", "actual_output", "expected_output"
    CONTEXT, RETRIEVAL_CONTEXT = "context", "retrieval_context"
    TOOLS_CALLED, EXPECTED_TOOLS = "tools_called", "expected_tools"


class BaseMetric:
    threshold, score, reason, success, error = 0.5, None, None, None, None
    evaluation_model, strict_mode, async_mode, verbose_mode, include_reason = None, False, False, False, True
    score_breakdown, evaluation_cost, verbose_logs, skipped = {}, None, None, False

    def is_successful(self):
        return self.success if self.success is not None else self.score is not None and self.score >= self.threshold


def _tool_calls(trace):
    calls = [call for step in trace.get("steps") or [] for call in step.get("tool_calls") or []]
    return [ToolCall(call.get("name"), call.get("arguments"), call.get("result")) for call in calls]


def _measure(metric, trace, context):
    case = LLMTestCase(
        input=_text(_input(trace)),
        actual_output=_text(_output(trace)),
        expected_output=context.reference,
        context=context.params.get("context"),
        retrieval_context=context.params.get("retrieval_context"),
        tools_called=_tool_calls(trace),
        expected_tools=[ToolCall(name) for name in context.params.get("expected_tools") or []],
        metadata=dict(context.params),
    )
    score = metric.measure(case)
    score = metric.score if metric.score is not None else score
    return {"pass": bool(metric.is_successful()), "score": score, "reason": metric.reason}


_MEMBERS.update(LLMTestCase=LLMTestCase, BaseMetric=BaseMetric, ToolCall=ToolCall, LLMTestCaseParams=LLMTestCaseParams)

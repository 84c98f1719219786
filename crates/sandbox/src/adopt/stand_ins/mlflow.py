# Stand-ins for classes and decorators of mlflow.
class Feedback:
    def __init__(self, name="feedback", value=None, error=None, source=None, rationale=None, metadata=None, **_):
        self.name, self.value, self.error, self.rationale, self.metadata = name, value, error, rationale, metadata


class AssessmentSource:
    def __init__(self, source_type=None, source_id=None):
        self.source_type, self.source_id = source_type, source_id


class AssessmentSourceType:
    CODE, HUMAN, LLM_JUDGE = "CODE", "HUMAN", "LLM_JUDGE"


def scorer(*functions, **_):
    return functions[0] if functions else lambda function: function


_MEMBERS.update(Feedback=Feedback, AssessmentSource=AssessmentSource, AssessmentSourceType=AssessmentSourceType)
_MEMBERS.update(scorer=scorer)

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


SyncScorer = ScorerWithPartial = Scorer
_MEMBERS.update(Score=Score, Scorer=Scorer)

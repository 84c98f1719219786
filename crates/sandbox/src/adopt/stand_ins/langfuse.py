# Stand-ins for classes of langfuse.
class Evaluation:
    def __init__(self, *, name=None, value=None, comment=None, metadata=None, data_type=None, **_):
        self.name, self.value, self.comment, self.metadata, self.data_type = name, value, comment, metadata, data_type


_MEMBERS.update(Evaluation=Evaluation)

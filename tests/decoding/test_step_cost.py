"""A step that a GPU does not wait for: few operations, and hardly ever a question to the device."""

from collections import Counter

import pytest
from small_models import decider, prompt_of, small_model
from torch.utils._python_dispatch import TorchDispatchMode

from insnet.decoding.loop import decode

MOST_OPERATIONS, MOST_SYNCS = 400, 2  # 797 and 9 before decoding kept its bounds on the host
WAITS = ("_local_scalar_dense", "nonzero")


class Operations(TorchDispatchMode):
    """Counts what torch is asked to do."""

    def __init__(self):
        super().__init__()
        self.count = Counter()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.count[operation.__name__.split(".")[0]] += 1
        return operation(*args, **(kwargs or {}))


def costs_of_steps(model, **settings):
    """(operations, syncs) of each step after the first."""
    prompt = prompt_of(model, [["baker", "bread"], [], ["ship"]], min_words=8, max_tokens=20)
    steps = decode(model.family, prompt, decider(model, **settings))
    next(steps)
    while True:
        with Operations() as operations:
            step = next(steps, None)
        if step is None or len(step.row) < 3:  # dropping rows is a cost of its own
            return
        yield sum(operations.count.values()), sum(operations.count[name] for name in WAITS)


@pytest.mark.parametrize("family", ["insnet", "autoregressive"])
def test_a_sequential_step_is_cheap(family):
    costs = list(costs_of_steps(small_model(family, "bpe"), stopping="threshold"))
    assert len(costs) > 3
    for operations, syncs in costs:
        assert operations <= MOST_OPERATIONS and syncs <= MOST_SYNCS

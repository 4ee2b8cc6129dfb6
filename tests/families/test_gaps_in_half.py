"""A gaps model in bfloat16: nearly the model in float32, and the same to the last bit in any batch."""

import pytest
import torch
from small_models import decider, prompt_of, small_model, traces

from insnet.devices import cpu_has_bf16

LISTS = [["baker", "bread"], [], ["the", "the", "harbour"], ["a very long phrase that stays whole", "ship"], ["Sunday"]]


@pytest.fixture
def model():
    sizes = {"width": 192, "heads": 3, "key_heads": 1, "inner": 1536}
    return small_model("gaps", "bpe", dtype=torch.float32, scale=0.1, **sizes)


@torch.no_grad()
def test_a_halved_model_offers_nearly_the_same(model):
    prompt = prompt_of(model, LISTS)
    exact = model.family.start(prompt).memory.last
    model.family.halve()
    rounded = model.family.start(prompt).memory.last
    assert rounded.dtype == torch.float32 and not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, rtol=0.05, atol=0.05)


@pytest.mark.skipif(not cpu_has_bf16(), reason="this processor multiplies in bfloat16 by other means")
def test_a_halved_row_is_the_same_to_the_bit_in_any_batch(model):
    model.family.halve()
    decide = decider(model, top_k=0, min_p=0.05, stopping="threshold")

    def written(lists, seeds):
        return traces(model, prompt_of(model, lists, seeds, max_tokens=24), decide)

    alone = [written([words], [seed])[0] for seed, words in enumerate(LISTS * 2)]
    assert len({str(steps) for steps in alone}) > 5
    for size in (2, 10):
        for first in range(0, 10, size):
            rows = range(first, first + size)
            assert written((LISTS * 2)[first : first + size], rows) == alone[first : first + size]

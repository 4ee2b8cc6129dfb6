"""Noise from counters: uniform, without visible dependence between counters, and the same in every batch."""

import math

import torch

from insnet import randomness
from insnet.randomness import Purpose, SeededPurpose, ShufflePurpose, mix, uniform

MANY = 1_000_000
TWO_64 = 1 << 64


def splitmix(counters):
    """`mix` with Python's unbounded integers."""
    state = 0
    for counter in counters:
        state = (state * 3 + counter + 0x9E3779B97F4A7C15) % TWO_64
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % TWO_64
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB % TWO_64
        state ^= state >> 31
    return state - TWO_64 if state >= TWO_64 // 2 else state


def counter_that_mixes_to(result):
    """The single counter whose mix is `result`: every step of the finaliser can be undone."""

    def undo_shift(value, bits):
        original = value
        for _ in range(64 // bits + 1):
            original = value ^ (original >> bits)
        return original

    state = undo_shift(result % TWO_64, 31) * pow(0x94D049BB133111EB, -1, TWO_64) % TWO_64
    state = undo_shift(state, 27) * pow(0xBF58476D1CE4E5B9, -1, TWO_64) % TWO_64
    counter = (undo_shift(state, 30) - 0x9E3779B97F4A7C15) % TWO_64
    return counter - TWO_64 if counter >= TWO_64 // 2 else counter


def largest_distance_to_uniform(values):
    """The Kolmogorov-Smirnov statistic times the root of the count."""
    ordered = values.flatten().sort().values
    steps = torch.arange(len(ordered), dtype=torch.float64) / len(ordered)
    distance = torch.maximum((ordered - steps).abs(), (steps + 1 / len(ordered) - ordered).abs()).max()
    return float(distance) * math.sqrt(len(ordered))


def test_mix_equals_splitmix_in_unbounded_integers():
    extremes = [0, 1, -1, 2**62, -(2**62), 2**63 - 1, -(2**63)]
    for first in extremes:
        for second in extremes:
            assert int(mix(first, second)) == splitmix([first, second])
            assert int(mix(torch.tensor(first), second, 7)) == splitmix([first, second, 7])


def test_noise_is_uniform_along_every_counter():
    index = torch.arange(MANY // 10)
    for values in (uniform(index), uniform(7, index), uniform(index, 7), uniform(1, index, 2), uniform(index * 1024)):
        mean_error = abs(float(values.mean()) - 0.5) * math.sqrt(12 * len(values))
        square_error = abs(float(values.square().mean()) - 1 / 3) * math.sqrt(len(values) / (4 / 45))
        assert mean_error < 4 and square_error < 4  # standard deviations
        assert largest_distance_to_uniform(values) < 1.95  # one draw in a thousand lies above


def test_neighbouring_counters_do_not_depend_on_each_other():
    values = uniform(torch.arange(1000)[:, None], torch.arange(1000)[None, :]) - 0.5
    for product in (values[1:] * values[:-1], values[:, 1:] * values[:, :-1], values * values.T.roll(1, 0)):
        assert abs(float(product.mean())) * 12 * math.sqrt(product.numel()) < 4.5


def test_every_bit_is_set_half_of_the_time():
    values = mix(3, torch.arange(MANY // 10))
    for bit in range(64):
        share = float(((values >> bit) & 1).double().mean())
        assert abs(share - 0.5) * 2 * math.sqrt(MANY // 10) < 4.5


def test_a_million_counters_give_a_million_values():
    grid = mix(5, torch.arange(1000)[:, None], torch.arange(1000)[None, :])
    assert len(grid.unique()) == MANY
    assert len(mix(torch.arange(MANY)).unique()) == MANY


def test_the_order_and_the_number_of_counters_matter():
    assert mix(1, 2) != mix(2, 1)
    assert len({int(mix(*counters)) for counters in ((), (0,), (0, 0), (0, 0, 0), (1,), (1, 0), (0, 1))}) == 7


def test_a_row_draws_the_same_in_any_batch():
    seeds = torch.randint(0, 2**62, (50,))
    index = torch.arange(20)
    together = uniform(seeds[:, None], 4, index[None, :])
    assert together.shape == (50, 20)
    for row in (0, 17, 49):
        assert torch.equal(uniform(seeds[row : row + 1, None], 4, index[None, :])[0], together[row])
        assert torch.equal(uniform(int(seeds[row]), 4, index), together[row])
        assert uniform(int(seeds[row]), torch.tensor(4), 3) == together[row, 3]
    assert torch.equal(uniform(seeds.int(), 4), uniform(seeds.int().long(), 4))


def test_noise_never_reaches_its_ends():
    """The counters with the smallest and the largest hash, found by undoing the hash."""
    for result in (0, 1, -1, -2, 2**63 - 1, -(2**63)):
        counter = counter_that_mixes_to(result)
        assert int(mix(counter)) == result
        value = float(uniform(counter))
        assert 0 < value < 1
        assert math.isfinite(math.log(value)) and math.log1p(-value) < 0


def test_plain_integers_leave_noise_on_the_device_of_its_tensors():
    """The meta device stands for a GPU: nothing may pull the state back to where plain integers live."""
    seeds = torch.zeros(3, 1, dtype=torch.int64, device="meta")
    assert mix(1, seeds, 5).device.type == "meta"
    assert uniform(1, seeds, 5, torch.arange(4, device="meta")).shape == (3, 4)


def test_the_constants_are_those_of_splitmix64():
    wanted = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
    assert tuple(c % TWO_64 for c in (randomness._GOLDEN, randomness._FIRST, randomness._SECOND)) == wanted


def test_draws_for_different_purposes_differ_and_purposes_keep_their_numbers():
    """Their values are unique, and written down: another number is another draw for every seed."""
    assert {each.name: int(each) for each in Purpose} == {
        "ORDER": 101, "ORDER_NUMBER": 102, "PRESENT_NUMBER": 111, "PRESENT_WHICH": 112, "TOLD": 121,
        "STOP": 201, "SLOT": 202, "TOKEN": 203, "REHEARSAL": 301, "COUNT": 302,
        "PERMUTATION": 401, "SAMPLE": 402, "TAU": 403, "ATTEMPT": 404, "CANDIDATE": 405, "SCORE": 406, "FORM": 407,
        "REQUEST": 501,
        "CANDIDATE_ORDER": 601, "REVISION": 701,
    }  # fmt: skip
    assert {each.name: int(each) for each in ShufflePurpose} == {"SENTENCES": 301, "BATCHES": 302, "GROUPS": 303}
    assert {each.name: int(each) for each in SeededPurpose} == {
        "GIVEN_MODE": 101, "GIVEN_NUMBER": 102, "GIVEN_WHICH": 103, "UNKNOWN": 104, "GIVEN_IMPORTANT": 105,
            "GIVEN_PHRASE": 106, "GIVEN_GROWS": 107, "SENTENCE": 201, "DROPOUT": 401,
        "WEIGHTS": 402,
    }  # fmt: skip
    assert int(mix(Purpose.TAU, 5)) == int(mix(403, 5))

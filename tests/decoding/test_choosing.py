"""The pieces of choosing against slow twins and hand-made hazards."""

import math
from dataclasses import replace

import pytest
import torch
from small_models import prompt_of, small_model, tokenizer_of, traces

from insnet.decoding.choose import Chooser
from insnet.decoding.config import GenerationConfig
from insnet.decoding.lengths import rehearsed, repeat_rows, with_length
from insnet.decoding.loop import decode
from insnet.decoding.truncation import draw, keep_min_p, keep_top_k, keep_top_mass, keep_typical, likeliest
from insnet.families.generator import State, initial_counters
from insnet.insertion.canvas import Edits
from insnet.insertion.constraints import Lexicon
from insnet.randomness import mix, uniform

INF = math.inf


def distributions(rows=40, size=12):
    log_probs = torch.randn(rows, size, dtype=torch.float64) * 2
    log_probs[torch.rand(rows, size) < 0.3] = -INF
    log_probs[:, 3] = 0.1
    return log_probs.log_softmax(dim=1)


def test_draw_never_picks_what_has_no_mass():
    log_probs = distributions(200)
    edges = [0.0, 2.0**-53, 0.5, 1 - 2.0**-53, 1.0]
    for value in [*edges, *torch.rand(50).tolist()]:
        index = draw(log_probs, torch.full((200,), value, dtype=torch.float64))
        assert log_probs.gather(1, index[:, None]).isfinite().all()
    tail = torch.tensor([[0.0, 0.1, 0.3, -INF, -INF]], dtype=torch.float64)  # sums to no round number
    assert int(draw(tail, torch.tensor([1 - 2.0**-53], dtype=torch.float64))) == 2
    one = torch.tensor([[-INF, -900.0, -INF]])
    assert int(draw(one, torch.tensor([0.999], dtype=torch.float64))) == 1  # however small, it is all there is


def test_draw_follows_the_distribution_over_many_seeds():
    log_probs = torch.tensor([[0.5, 0.0, 0.3, 0.15, 0.05]], dtype=torch.float64).log().expand(20_000, -1)
    noise = uniform(1, torch.arange(20_000), 3)
    counts = draw(log_probs, noise).bincount(minlength=5) / 20_000
    for share, expected in zip(counts.tolist(), [0.5, 0.0, 0.3, 0.15, 0.05], strict=True):
        assert abs(share - expected) < 4 * math.sqrt(0.25 / 20_000)
    assert counts[1] == 0


def slow_top_k(row, k):
    best = sorted(range(len(row)), key=lambda i: (-row[i], i))[: k or len(row)]
    return [row[i] if i in best else -INF for i in range(len(row))]


def slow_top_mass(row, mass):
    best, total = [], 0.0
    for i in sorted(range(len(row)), key=lambda i: (-row[i], i)):
        if total >= mass or row[i] == -INF:
            break
        best.append(i)
        total += math.exp(row[i])
    return [row[i] if i in best else -INF for i in range(len(row))]


@pytest.mark.parametrize("k", [0, 1, 2, 5, 11, 12, 50])
def test_keep_top_k_equals_a_slow_twin(k):
    log_probs = distributions()
    assert keep_top_k(log_probs, k).tolist() == [slow_top_k(row, k) for row in log_probs.tolist()]


@pytest.mark.parametrize("k", [0, 1, 3, 7, 30])
def test_the_likeliest_are_what_keep_top_k_keeps(k):
    """Also of equals, and where fewer than k have any probability."""
    torch.manual_seed(0)
    log_probs = torch.randint(-4, 0, (40, 20)).double()  # many equals
    log_probs[::2] += torch.rand(20, 20)  # and none
    log_probs[::3] = log_probs[::3].masked_fill(torch.rand(14, 20) < 0.8, -math.inf)
    values, index = likeliest(log_probs, k)
    assert (index.diff(dim=1) > 0).all()
    assert torch.equal(values, log_probs.gather(1, index))
    found = torch.full_like(log_probs, -math.inf).scatter(1, index, values)
    assert torch.equal(found, keep_top_k(log_probs, k))


def test_keep_top_k_keeps_the_first_of_equals():
    log_probs = torch.zeros(2, 100)
    log_probs[1, 50] = 1
    assert keep_top_k(log_probs, 3).isfinite().nonzero().tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 50]]


@pytest.mark.parametrize("mass", [0.01, 0.3, 0.7, 0.95, 1.0])
def test_keep_top_mass_equals_a_slow_twin(mass):
    log_probs = distributions()
    assert keep_top_mass(log_probs, mass).tolist() == [slow_top_mass(row, mass) for row in log_probs.tolist()]


def slow_min_p(row, share):
    return [value if math.exp(value) >= share * math.exp(max(row)) * (1 - 1e-12) else -INF for value in row]


@pytest.mark.parametrize("share", [0.0, 1e-6, 0.05, 0.3, 1.0])
def test_keep_min_p_equals_a_slow_twin(share):
    log_probs = distributions()
    assert keep_min_p(log_probs, share).tolist() == [slow_min_p(row, share) for row in log_probs.tolist()]
    assert keep_min_p(log_probs, share).isfinite().any(dim=1).all()


def slow_typical(row, mass):
    """Locally typical sampling in its authors' words: nearest to the conditional entropy first, until tau is held."""
    entropy = -sum(math.exp(value) * value for value in row if value > -INF)
    best, total = [], 0.0
    for i in sorted(range(len(row)), key=lambda i: abs(-row[i] - entropy)):
        if total >= mass or row[i] == -INF:
            break
        best.append(i)
        total += math.exp(row[i])
    return [row[i] if i in best else -INF for i in range(len(row))]


@pytest.mark.parametrize("mass", [0.01, 0.2, 0.5, 0.9, 1.0])
def test_keep_typical_equals_a_slow_twin(mass):
    log_probs = distributions()
    assert keep_typical(log_probs, mass).tolist() == [slow_typical(row, mass) for row in log_probs.tolist()]


def test_typical_tokens_need_not_be_the_likeliest():
    log_probs = torch.tensor([[0.4, *[0.03] * 20]], dtype=torch.float64).log()  # 2.5 nats are expected
    assert not keep_typical(log_probs, 0.3)[0, 0].isfinite()
    assert keep_typical(log_probs, 0.9)[0, 0].isfinite()


def test_truncation_leaves_a_row_without_choices_alone():
    nothing = torch.full((1, 4), -INF)
    for kept in (keep_min_p(nothing, 0.1), keep_typical(nothing, 0.5), keep_top_mass(nothing, 0.5)):
        assert kept.tolist() == nothing.tolist()


def test_cuts_follow_one_another(model):
    """Each sees what the one before it has left, renormalised."""
    log_probs = distributions()
    expected = log_probs.tolist()
    for cut, value in ((slow_top_k, 8), (slow_top_mass, 0.9), (slow_min_p, 0.1), (slow_typical, 0.7)):
        rows = [[value - math.log(sum(map(math.exp, row))) for value in row] for row in expected]
        expected = [cut(row, value) for row in rows]
    kept = chooser_of(model, top_k=8, top_p=0.9, min_p=0.1, typical_p=0.7)._truncated(log_probs)
    assert kept.isfinite().tolist() == [[value > -INF for value in row] for row in expected]


def state_of(model, rows, **bounds):
    prompt = prompt_of(model, [[]] * rows, **{"max_tokens": 50, "max_words": 60, **bounds})
    return State(prompt.canvas, prompt.constraints, **initial_counters(prompt)), prompt


def chooser_of(model, **settings):
    return Chooser(GenerationConfig(**settings), model.scribe.lexicon)


def stops(model, hazards, *, rows=1, **settings):
    """The number of insertions before each row's stop, for a model whose hazards are these."""
    chooser = chooser_of(model, **settings)
    state, _ = state_of(model, rows, min_words=0)
    ended = torch.full((rows,), -1)
    for step, hazard in enumerate(hazards):
        log_stop = torch.full((rows,), math.log(hazard), dtype=torch.float64)
        finished = chooser.stop(state, log_stop)
        ended = torch.where((ended < 0) & finished, step, ended)
        log_go = torch.log1p(-log_stop.exp())
        state = replace(state, step=state.step + 1, log_survival=state.log_survival + log_go)
    return ended.tolist()


HAZARDS = [0.1, 0.2, 0.2, 0.45, 0.55, 0.2, 0.9, 0.99]


@pytest.fixture(scope="module")
def model():
    return small_model("insnet", "word")


def test_threshold_stops_at_the_first_hazard_above_it(model):
    assert stops(model, HAZARDS, stopping="threshold", stop_threshold=0.5) == [4]
    assert stops(model, HAZARDS, stopping="threshold", stop_threshold=0.95) == [7]


def test_cumulative_stops_at_the_median_of_the_hazards(model):
    """P(length <= n) = 1 - prod (1 - h): it passes one half at the median, whatever single hazards do."""
    survival, lengths = 1.0, []
    for step, hazard in enumerate(HAZARDS):
        lengths.append((step, 1 - (survival := survival * (1 - hazard))))
    for theta in (0.3, 0.5, 0.9):
        expected = next(step for step, stopped in lengths if stopped > theta)
        assert stops(model, HAZARDS, stopping="cumulative", stop_threshold=theta) == [expected]
    sampled = stops(model, HAZARDS, rows=2001, stopping="sampled")
    ended = sorted(length if length >= 0 else 99 for length in sampled)
    assert stops(model, HAZARDS, stopping="cumulative", stop_threshold=0.5) == [ended[1000]]


def test_sampled_stops_as_often_as_the_hazard_says(model):
    lengths = torch.tensor(stops(model, HAZARDS[:4], rows=4000, stopping="sampled"))
    alive = 4000
    for step, hazard in enumerate(HAZARDS[:4]):
        ended = int((lengths == step).sum())
        assert abs(ended / alive - hazard) < 4 * math.sqrt(0.25 / alive)
        alive -= ended


def test_bounds_overrule_every_stopping_rule(model):
    never, always = math.log(1e-9), math.log(1 - 1e-9)
    for stopping in ("threshold", "sampled", "cumulative"):
        chooser = chooser_of(model, stopping=stopping)
        state, _ = state_of(model, 1, min_words=1)
        assert not chooser.stop(state, torch.tensor([always], dtype=torch.float64)).item()  # no word yet
        state = replace(state, inserted=torch.tensor([50]))
        assert chooser.stop(state, torch.tensor([never], dtype=torch.float64)).item()  # max_tokens
        state, _ = state_of(model, 1, min_words=0)
        assert chooser.stop(state, torch.tensor([always], dtype=torch.float64)).item()
        fixed = replace(state, constraints=replace(state.constraints, insertions=torch.tensor([3])))
        assert not chooser.stop(fixed, torch.tensor([always], dtype=torch.float64)).item()
        assert chooser.stop(
            replace(fixed, inserted=torch.tensor([3])), torch.tensor([never], dtype=torch.float64)
        ).item()


@pytest.mark.parametrize(("quantile", "place"), [(0.5, 2), (0.25, 1)])
@pytest.mark.parametrize("name", ["insnet", "autoregressive"])
def test_rehearsed_length_is_a_quantile_of_untruncated_samples(name, quantile, place):
    model = small_model(name, "word")
    chooser = chooser_of(model, rehearsals=5, count_quantile=quantile, max_tokens=20, length_slack=0.0)
    requests = [["baker"], [], ["old ship", "rain"], ["x", "y", "z"]]
    prompt = prompt_of(model, requests, seeds=[7, 8, 9, 10], max_tokens=20)
    found = rehearsed(model.family, prompt, chooser).tolist()
    free = Chooser(chooser.config.untruncated(), chooser.lexicon)
    assert (free.config.top_k, free.config.slot_mass, free.config.stopping) == (0, 1.0, "sampled")
    for row, request in enumerate(requests):
        lengths = []
        for number in range(5):
            seed = int(mix(301, 7 + row, number))
            steps = traces(model, prompt_of(model, [request], seeds=[seed], max_tokens=20), free)[0]
            lengths.append(sum(len(step.inserts) for step in steps))
        assert found[row] == sorted(lengths)[place]
    assert len(set(found)) > 1
    decoded = traces(model, with_length(prompt, rehearsed(model.family, prompt, chooser), chooser), chooser)
    assert [sum(len(step.inserts) for step in steps) for steps in decoded] == found


def test_slack_lets_a_text_end_at_the_first_good_place_near_its_length(model):
    def ended_after(hazards, **settings):
        state, _ = state_of(model, 1, min_words=0)
        limits = replace(state.constraints, insertions=torch.tensor([4]), slack=torch.tensor([2]))
        for inserted, hazard in enumerate(hazards):
            state = replace(state, constraints=limits, inserted=torch.tensor([inserted]))
            if chooser_of(model, **settings).stop(state, torch.tensor([hazard], dtype=torch.float64).log()).item():
                return inserted
        return None

    assert ended_after([0.9, 0.9, 0.1, 0.6, 0.9, 0.9, 0.9]) == 3  # not before 4 - 2
    assert ended_after([0.1] * 9) == 6  # 4 + 2 at the latest
    assert ended_after([0.1, 0.1, 0.6, 0.1, 0.1, 0.1, 0.1], stop_threshold=0.7) == 6


def test_repeated_rows_stand_together(model):
    prompt = prompt_of(model, [["baker"], ["ship"]], seeds=[1, 2])
    assert repeat_rows(prompt, 3).seeds.tolist() == [1, 1, 1, 2, 2, 2]


def texts_of(model, rows=25, **settings):
    options = {"stopping": "sampled", "min_words": 10, "max_tokens": 25, "seed": 1, **settings}
    return [r.text.split() for r in model.generate_batch([["baker"]] * rows, **options)]


def token_runs(model, size, **settings):
    """Every row's runs of `size` tokens, <bos> and <eos> aside."""
    config = GenerationConfig(**{"stopping": "sampled", "min_words": 12, "max_tokens": 25, **settings})
    prompt = prompt_of(model, [[]] * 20, min_words=12, max_tokens=25)
    for steps in traces(model, prompt, Chooser(config, model.scribe.lexicon)):
        tokens = []
        for step in steps:
            for slot, token, _ in step.inserts:
                tokens.insert(slot, token)
        yield [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]


def test_no_token_stands_beside_its_equal_unless_allowed(model):
    greedy = {"top_k": 2, "no_repeat_ngram": 0}
    assert not any(a == b for runs in token_runs(model, 2, **greedy) for a, b in runs)
    assert any(a == b for runs in token_runs(model, 2, **greedy, no_adjacent_repeats=False) for a, b in runs)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_run_of_tokens_is_written_twice_unless_allowed(model, size):
    settings = {"top_k": 1, "no_adjacent_repeats": False}
    assert all(len(set(runs)) == len(runs) for runs in token_runs(model, size, no_repeat_ngram=size, **settings))
    assert any(len(set(runs)) < len(runs) for runs in token_runs(model, size, no_repeat_ngram=0, **settings))


def test_repetition_penalty_divides_a_tokens_probability_for_each_time_it_stands_there(model):
    config = GenerationConfig(no_adjacent_repeats=False, no_repeat_ngram=0, repetition_penalty=2.0)
    state, _ = state_of(model, 1)
    tokens = state.canvas.tokens.clone()
    tokens[0, :6] = torch.tensor([1, 9, 8, 9, 9, 2])
    state = replace(state, canvas=replace(state.canvas, tokens=tokens, length=torch.tensor([6])))
    flat = torch.zeros(1, len(model.scribe.lexicon.generatable), dtype=torch.float64)
    changed = Chooser(config, model.scribe.lexicon)._without_repetitions(state, torch.tensor([2]), flat)[0]
    assert changed[[7, 8, 9]].exp().tolist() == pytest.approx([1, 1 / 2, 1 / 8])


def test_where_nothing_may_be_written_the_row_ends(model):
    """A lexicon that allows nothing: no forbidden token is put, and decoding comes to its end."""
    lexicon = Lexicon(**tokenizer_of("word").lexicon())
    mute = Lexicon(**{**vars(lexicon), "generatable": torch.zeros_like(lexicon.generatable)})
    for name in ("insnet", "autoregressive"):
        family = small_model(name, "word")
        prompt = prompt_of(family, [["baker"], []], max_tokens=9)
        steps = list(decode(family.family, prompt, Chooser(GenerationConfig(stopping="sampled", min_words=5), mute)))
        assert len(steps) == 1 and steps[0].edits.finished.all() and steps[0].edits.token.eq(Edits.NOTHING).all()


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"temperature": 0}, "temperature is 0; expected a number above 0"),
        ({"temperature": math.inf}, "temperature is inf"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"final_temperature": -1}, "final_temperature is -1; expected 0 or a number above it"),
        ({"top_p": 0}, "top_p is 0; expected a share"),
        ({"top_k": -1}, "top_k is -1; expected 0 or more"),
        ({"stopping": "maybe"}, "stopping is 'maybe'; expected one of rehearsed, counted"),
        ({"min_words": 9, "max_words": 8}, "min_words 9 is above max_words 8"),
        ({"rehearsals": 0}, "rehearsals is 0; expected 1 or more"),
    ],
)
def test_impossible_settings_are_refused_in_a_sentence(settings, words):
    with pytest.raises(ValueError, match=words):
        GenerationConfig(**settings)


@pytest.mark.parametrize(
    ("insertions", "inserted", "temperature"),
    [(6, 0, 0.5 + 1.5 * 6 / 8), (6, 3, 0.5 + 1.5 * 3 / 5), (6, 5, 0.5 + 1.5 * 1 / 3), (6, 8, 0.5), (-1, 3, 2.0)],
)
def test_temperature_falls_with_the_share_of_the_text_that_is_missing(model, insertions, inserted, temperature):
    """Two words are there. Past the wanted length it has fallen to the end; where none is wanted, it does not fall."""
    rows = 300
    prompt = prompt_of(model, [["baker", "rain"]] * rows, seeds=range(rows), max_tokens=50, max_words=60)
    state = State(prompt.canvas, prompt.constraints, **initial_counters(prompt))
    limits = replace(state.constraints, insertions=torch.full((rows,), insertions))
    state = replace(state, constraints=limits, inserted=torch.full((rows,), inserted))
    assert (state.canvas.length - 2).tolist() == [2] * rows
    size = len(model.tokenizer.starts_word)
    log_probs = torch.randn(1, size, dtype=torch.float64).log_softmax(dim=1).expand(rows, -1)
    slot = torch.zeros(rows, dtype=torch.long)
    falling, same = {"temperature": 2.0, "final_temperature": 0.5}, {"temperature": temperature}
    drawn = [chooser_of(model, top_k=0, **own).token(state, slot, log_probs) for own in (falling, same)]
    assert torch.equal(*drawn)
    assert len(set(drawn[0].tolist())) > 10


def test_an_unknown_setting_names_its_nearest():
    with pytest.raises(ValueError, match="unknown generation setting 'temprature'; did you mean 'temperature'"):
        GenerationConfig.of({"temprature": 1})


@pytest.mark.parametrize("choices", [3, 256, 257, 1000, 1024])
def test_a_draw_in_blocks_is_the_draw_by_one_running_sum(choices):
    generator = torch.Generator().manual_seed(choices)
    log_probs = 3 * torch.randn(400, choices, dtype=torch.float64, generator=generator)
    log_probs[torch.rand(400, choices, generator=generator) < 0.5] = -math.inf
    log_probs[:, 1] = 0.0  # no row without any choice
    log_probs[7] = -math.inf
    log_probs[7, -1] = -800.0  # all there is, in the last place
    noise = torch.rand(400, dtype=torch.float64, generator=generator)
    noise[:3] = torch.tensor([0.0, 1 - 2.0**-53, 0.5])
    reached = log_probs.softmax(dim=1).cumsum(dim=1)
    slow = [int((row <= point * row[-1]).sum()) for row, point in zip(reached, noise, strict=True)]
    last = [int(row.isfinite().nonzero()[-1]) for row in log_probs]
    assert draw(log_probs, noise).tolist() == [min(pair) for pair in zip(slow, last, strict=True)]
    assert int(draw(torch.full((1, choices), -math.inf), torch.tensor([0.3], dtype=torch.float64))) < choices

"""What a user asks for: lengths, bans, blanks, orders, samples, and the sentences that refuse the impossible."""

import random
import re
from dataclasses import replace

import pytest
import torch
from small_models import KINDS, LINES, batch_of, prompt_of, small_model
from small_tokenizers import TOKENIZERS

from insnet.decoding.prompt import prompt_of_requests
from insnet.decoding.request import Request, blanks, required_words
from insnet.insertion.canvas import INSERTED
from insnet.insertion.constraints import Lexicon
from insnet.text.spellings import same_letters
from insnet.text.words import whole_word_pattern

HOT = {"temperature": 20.0, "top_k": 0, "slot_mass": 1.0}
WORDS = sorted({word.strip(".,?!") for line in LINES for word in line.split()})


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return small_model("insnet", request.param)


@pytest.mark.parametrize("name", ["insnet", "autoregressive"])
@pytest.mark.parametrize("kind", KINDS)
def test_lengths_are_whitespace_words_of_the_printed_text(name, kind):
    """200 random requests: never below the least, never above the most."""
    model = small_model(name, kind)
    rng = random.Random(4)
    for least, most in [(1, 6), (5, 5), (8, 12), (6, 30)]:
        keywords = [
            [rng.choice([*WORDS, "🙂", "C++", "x y", "(a)"]) for _ in range(rng.randint(0, 2))] for _ in range(50)
        ]
        options = {"length": (least, most), "seed": rng.randint(0, 99), "max_tokens": 200, "batch_size": 50}
        results = model.generate_batch(keywords, stopping="sampled", no_repeat_ngram=0, **options, **HOT)
        assert all(result.finished for result in results)
        assert all(least <= len(result.text.split()) <= most for result in results)


@pytest.mark.parametrize("name", ["insnet", "autoregressive"])
@pytest.mark.parametrize("kind, lower_case", [("word", False), ("bpe", False), ("bpe", True)])
def test_banned_words_never_appear(name, kind, lower_case):
    """In any case and spelling, as whole words, in 50 texts per model; without the ban some do appear."""
    bounds = {"min_words": 14, "max_tokens": 14, "stopping": "threshold"}  # texts are cut off, the longer the better
    model = small_model(name, kind, lower_case=lower_case, generation=bounds)
    options = {"seed": 5, "batch_size": 50, "top_k": 40}
    requests = [[], ["Xerxes"]] * 25
    free = model.generate_batch(requests, **options)
    common = [token for result in free for token in result.text.split() if token.isalpha() and token != "Xerxes"]
    banned = sorted({word.lower() for word in common if len(word) <= 6}, key=common.count)[-8:]
    banned += [f"{a} {b}" for a, b in [(common[0], common[1])] if a.lower() not in banned]
    patterns = [whole_word_pattern(word, ignore_case=True) for word in banned]
    assert sum(bool(pattern.search(result.text)) for pattern in patterns for result in free) > 20
    for result in model.generate_batch(requests, banned=banned, **options):
        assert not any(pattern.search(result.text) for pattern in patterns), (banned, result.text)


def test_a_further_piece_at_the_start_of_a_text_is_no_way_around_a_ban():
    """Behind <bos> a piece without a word start prints a word of its own."""
    model = small_model("insnet", "bpe")
    tokenizer = model.tokenizer
    piece = next(
        token
        for token in range(261, tokenizer.size)
        if not tokenizer.starts_word[token] and tokenizer.piece(token).isalpha() and len(tokenizer.piece(token)) > 1
    )
    word = tokenizer.piece(piece)
    forbidden = prompt_of(model, [[]], banned=(word,)).limits.forbidden[0].tolist()
    assert [1, piece] in [[token for token in way if token >= 0] for way in forbidden]


BLANKS = [
    "The ___ sat on ___.",
    "___ and (___) ___!",
    "Über ___ 🙂 ___",
    "___",
    "C++ is ___, ___",
    "a ___ b ___ c ___",
]


@pytest.mark.parametrize("options", [{}, {"mode": "parallel"}, {"revise": 1, "revise_share": 1.0}])
def test_blanks_are_filled_and_the_text_is_kept_word_for_word(model, options):
    for seed in range(8):
        for text in BLANKS:
            result = model.infill(text, seed=seed, max_tokens=20, **options, **HOT)
            filled = r"\s?\S.*?\s?".join(re.escape(part.strip()) for part in text.split("___"))
            assert re.fullmatch(filled, result.text), (text, result.text)


@pytest.mark.parametrize("options", [{"stopping": "threshold"}, {"mode": "parallel"}, {"max_tokens": 4}])
def test_every_blank_gets_a_word_with_a_letter_or_a_digit(model, options):
    """However hot; checked by what was put between one given stretch and the next."""
    config = model.generation.changed(**{**HOT, **options})
    requests = [replace(blanks(text), bounds=config.bounds) for text in BLANKS] * 20
    for written in model.scribe.write(requests, range(len(requests)), config):
        gaps = [[]]
        for token, origin in written.end().tokens:
            if origin == INSERTED:
                gaps[-1].append(token)
            elif len(gaps) < origin + 2:
                gaps.append([])
        gaps = gaps[0 if written.request.opens_start else 1 : None if written.request.opens_end else -1]
        assert len(gaps) == written.request.least_in_blanks()
        for gap in gaps:
            assert any(map(str.isalnum, model.tokenizer.render(gap))), written.text


def test_symbols_that_touch_a_blank_are_encoded_as_in_running_text(model):
    """The model knows "mat." as a word and a joined full stop, not as a full stop of its own."""
    canvas = prompt_of(model, [blanks("The baker sold (___).")]).canvas
    inner = canvas.tokens[0, 1 : int(canvas.length[0]) - 1].tolist()
    whole = model.tokenizer.encode("The baker sold (baker).")
    baker = model.tokenizer.encode("The baker")[len(model.tokenizer.encode("The")) :]
    place = len(model.tokenizer.encode("The baker sold (a")) - len(model.tokenizer.encode("a"))
    assert inner == [*whole[:place], *whole[place + len(baker) :]]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_given_words_have_the_tokens_that_they_have_inside_a_text(name):
    tokenizer = TOKENIZERS[name]
    lexicon = Lexicon(**tokenizer.lexicon(), same_letters=same_letters(tokenizer))

    def given(request):
        canvas = prompt_of_requests([request], [0], tokenizer, lexicon, torch.device("cpu")).canvas
        return canvas.tokens[0, 1 : int(canvas.length[0]) - 1].tolist()

    for keywords in (["castle", "king"], ["the old king", "well-known"]):
        text = "a " + " ".join(keywords)
        assert given(Request(required_words(keywords))) == tokenizer.encode(text)[len(tokenizer.encode("a")) :]
    fixed = "The king was"
    assert given(blanks(f"{fixed} ___")) == tokenizer.encode(fixed), "at the beginning as there"


def test_blanks_keep_their_length_bounds(model):
    for seed in range(12):
        for text, least, most in (("The ___ sat on ___.", 6, 9), ("(___)", 1, 2), ("___, he said", 4, 5)):
            result = model.infill(text, seed=seed, length=(least, most), max_tokens=60, **HOT)
            assert least <= len(result.text.split()) <= most, result.text


@pytest.mark.parametrize("kind, lower_case", [("word", False), ("bpe", False), ("bpe", True)])
def test_a_keyword_begins_with_a_capital_where_a_sentence_begins(kind, lower_case):
    """A model that knows lower case only leaves its keywords as they are."""
    model = small_model("insnet", kind, lower_case=lower_case)
    alone = {"max_words": 2, "min_words": 0, "seed": 1}
    assert model.generate(["castle", "king"], **alone).text == ("castle king" if lower_case else "Castle king")
    assert model.generate(["iPhone", "king"], **alone).text == "iPhone king"
    end = model.tokenizer.encode("ship.")[-1]
    parts = [*required_words(["castle"]), end, *required_words(["king", "queen"])]
    assert model.tokenizer.render(parts) == ("castle. king queen" if lower_case else "Castle. King queen")
    assert model.infill("castle ___ king.", seed=1).text.startswith("castle "), (
        "text around blanks is kept to the letter"
    )


def test_too_little_room_for_the_blanks_is_refused():
    model = small_model("insnet", "word")
    with pytest.raises(ValueError, match="2 words and 2 blanks are required, but at most 3 allowed"):
        model.infill("sat ___ on ___", length=(None, 3))
    with pytest.raises(ValueError, match="2 blanks cannot be filled with max_tokens 1"):
        model.infill("sat ___ on ___", max_tokens=1)


def test_any_order_keeps_every_keyword_in_whatever_order(model):
    keywords = ["ship", "baker", "rain", "old town"]
    found = set()
    for seed in range(6):
        result = model.generate(keywords, any_order=True, seed=seed, max_tokens=6, rehearsals=2)
        assert sorted(result.keywords) == sorted(keywords)
        assert all(whole_word_pattern(word, ignore_case=True).search(result.text) for word in keywords)
        places = [whole_word_pattern(word, ignore_case=True).search(result.text).start() for word in result.keywords]
        assert places == sorted(places)
        found.add(tuple(result.keywords))
    assert len(found) > 1


def test_any_order_takes_the_likeliest_of_the_orders_tried():
    model = small_model("insnet", "word")
    options = {"seed": 3, "stopping": "sampled"}
    best = model.generate(["ship", "rain"], any_order=True, **options)
    both = [model.generate(order, **options) for order in (["ship", "rain"], ["rain", "ship"])]
    expected = max(both, key=lambda result: result.log_prob / (result.steps + 1))
    assert (best.text, best.keywords) == (expected.text, expected.keywords)
    assert best.log_prob == pytest.approx(expected.log_prob, rel=0, abs=1e-9)


@pytest.mark.parametrize("seed", [7, 2**63 - 1])
def test_samples_differ_and_each_comes_again_by_its_own_seed(model, seed):
    options = {"min_words": 4, "max_tokens": 30, "stopping": "sampled"}
    several = model.generate(["baker"], num_samples=5, seed=seed, **options)
    assert len({result.text for result in several}) == 5
    assert model.generate(["baker"], num_samples=5, seed=seed, **options) == several
    assert several[0].seed == seed and all(result.seed >= 0 for result in several)
    for result in several:
        assert model.generate(["baker"], seed=result.seed, **options).text == result.text
    for result in model.infill("The ___ sat.", num_samples=3, seed=seed, accept=lambda text: len(text) % 2 == 0):
        assert model.infill("The ___ sat.", seed=result.seed).text == result.text


def test_texts_of_one_call_share_no_noise():
    """With one flat distribution for all and one seed, different lists still get different words."""
    model = small_model("insnet", "word")
    lists = [[word] for word in WORDS[:60]]
    options = {"seed": 9, "max_tokens": 1, "stopping": "sampled", "min_words": 2, "temperature": 1e6, "top_k": 0}
    results = model.generate_batch(lists, **options)
    inserted = {result.trace[0]["insert"][0][1] for result in results}
    assert len(inserted) > 40
    again = model.generate_batch([*lists[30:], *lists[:30]], **options)
    assert [r.text for r in again] == [r.text for r in (*results[30:], *results[:30])]


BAD = [
    (lambda m: m.generate([""]), "keyword 1 is empty; every keyword needs"),
    (lambda m: m.generate(["a", "  "]), "keyword 2 is empty"),
    (lambda m: m.generate(["a\x00b"]), "holds a control character; remove it"),
    (lambda m: m.generate([3]), "keyword 1 is 3; expected a word"),
    (
        lambda m: m.generate("day decided"),
        r"keywords came as one string 'day decided'; expected a list of words, like \['day'",
    ),
    (lambda m: m.generate_batch(["day decided"]), "keywords came as one string"),
    (lambda m: m.generate(["cat"], banned="cat"), "banned came as one string 'cat'"),
    (lambda m: m.generate(["cat"], banned=["cat"]), "'cat' is both required and banned; drop one of the two"),
    (lambda m: m.generate(["the Cat sat"], banned=["cat"]), "'cat' is both required and banned"),
    (lambda m: m.generate(["new", "york"], banned=["new york"]), "'new york' is both required and banned"),
    (lambda m: m.generate(["x"], banned=[""]), "cannot ban '': it holds no word|is empty"),
    (lambda m: m.generate(["x"] * 2000, max_words=9999), "the required words take 2000 tokens, more than 1024"),
    (
        lambda m: m.generate(["a", "b", "c"], length=(1, 2)),
        "3 words are required, but at most 2 allowed; raise the upper length",
    ),
    (lambda m: m.generate(["a"], length=5), r"length is 5; expected the fewest and the most words, like \(8, 40\)"),
    (lambda m: m.generate(["a"], length=(9, 3)), "the fewest words are more than the most"),
    (lambda m: m.generate(["a"], length=(2.5, 9)), "expected whole numbers of words"),
    (lambda m: m.generate(["a"], length=(-2, 9)), "expected whole numbers of words"),
    (lambda m: m.generate([], min_words=100, max_tokens=10), "100 words cannot be reached with max_tokens 10"),
    (lambda m: m.generate(["a"], temprature=2), "unknown generation setting 'temprature'; did you mean 'temperature'"),
    (lambda m: m.generate(["a"], num_samples=0), "num_samples is 0; expected 1 or more"),
    (lambda m: m.generate(["a"], batch_size=0), "batch_size is 0"),
    (lambda m: m.generate(["a"], seed=2**63), "seed is 9223372036854775808; expected a whole number from 0 to 9223"),
    (lambda m: m.generate(["a"], seed=-1), "seed is -1; expected a whole number from 0"),
    (lambda m: m.generate(["a"], seed=1.5), "seed is 1.5; expected a whole number from 0"),
    (lambda m: m.generate(["a"], seed=True), "seed is True; expected a whole number from 0"),
    (lambda m: next(m.stream(["a"], seed="1")), "seed is '1'; expected a whole number"),
    (lambda m: m.infill("no blank here"), "no blank in 'no blank here'; write ___ where words are missing"),
    (lambda m: m.infill("half___word"), "a blank touches the word in 'half'; put a space between"),
    (lambda m: m.infill("the ___", any_order=True), "any_order is for keywords"),
    (lambda m: next(m.stream(["a"], any_order=True)), "any_order chooses among finished texts"),
    (lambda m: m.score("  "), "the text to score is empty"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_cannot_be_done_is_refused_in_one_clear_sentence(number):
    ask, words = BAD[number]
    with pytest.raises(ValueError, match=words) as refused:
        ask(small_model("insnet", "word"))
    message = str(refused.value)
    assert "\n" not in message and len(message) < 200


def test_scores_bound_the_likelihood_and_say_whether_they_are_exact():
    for name, exact in (("insnet", False), ("autoregressive", True)):
        model = small_model(name, "word")
        score = model.score(LINES[0])
        assert score.is_exact is exact and score.unknown_tokens == 0
        assert score.nats_per_token == pytest.approx(-score.log_prob / score.tokens)
        assert model.score(LINES[0]) == score and model.score("zzz").unknown_tokens == 1


def test_a_bound_averaged_over_all_orders_stays_below_the_likelihood():
    """Two tokens have two orders: log of the sum of both trajectories is the exact likelihood (decision 23)."""
    model = small_model("insnet", "word")
    tokens = [[20, 30], [20, 30]]
    batch = batch_of(model.tokenizer, tokens, None, [[0, 3, 1, 2], [0, 3, 2, 1]])
    bounds = model.family.log_likelihood(batch).total.detach()
    exact = (bounds - torch.tensor(2.0).double().log()).logsumexp(0)
    assert bounds.mean() < exact < bounds.max() + 1e-12
    sampled = batch_of(model.tokenizer, tokens * 400, None, None, seeds=range(800))
    found = model.family.log_likelihood(sampled).total.detach()
    assert float(found.mean()) == pytest.approx(float(bounds.mean()), abs=0.2)

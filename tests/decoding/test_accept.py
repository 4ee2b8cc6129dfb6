"""A filter on finished texts: nothing it refuses is ever returned, and it changes nothing else."""

import pytest
from small_models import small_model

from insnet.decoding.job import Job
from insnet.text.refused_words import RefusedWords

LISTS = [["captain", "ship"], ["bread"], [], ["goat", "hat", "garden"], ["ship", "captain"], ["rope"]]
LONG = {"min_words": 4, "stopping": "sampled"}  # an untrained model would often write nothing at all


@pytest.fixture(scope="module", params=["insnet", "autoregressive"])
def model(request):
    return small_model(request.param, "bpe", generation=LONG)


@pytest.fixture(scope="module")
def insnet_model():
    return small_model("insnet", "bpe", generation=LONG)


def has_even_length(text: str) -> bool:
    """Refuses about every second text, for no reason that a model could learn."""
    return len(text) % 2 == 0


def essence(results) -> list[tuple]:
    """All of some results but their log-probabilities, whose last digit is the batch's."""
    return [(result.keywords, result.text, result.steps, result.seed) for result in results]


def drawn_by_hand(model, keywords, seed, accept, attempts=20):
    """The slow twin: one text after the other, without a filter, until one will do."""
    for attempt in range(attempts):
        result = model.generate(keywords, seed=Job.attempt_seed(seed, attempt))
        if accept(result.text):
            return result
    return None


def test_what_is_returned_is_the_first_attempt_that_is_accepted(model):
    results = model.generate_batch(LISTS, seed=5, accept=has_even_length)
    expected = [drawn_by_hand(model, keywords, 5, has_even_length) for keywords in LISTS]
    assert essence(results) == essence(expected)
    assert len({result.seed for result in results}) > 1  # some were drawn again, some were not


def test_a_filter_that_accepts_everything_changes_nothing(model):
    free = model.generate_batch(LISTS, seed=5)
    assert essence(model.generate_batch(LISTS, seed=5, accept=lambda text: True)) == essence(free)


def test_a_filtered_text_is_the_same_alone_and_in_any_batch(model):
    together = model.generate_batch(LISTS, seed=9, accept=has_even_length)
    in_pairs = model.generate_batch(LISTS, seed=9, accept=has_even_length, batch_size=2)
    alone = [model.generate(keywords, seed=9, accept=has_even_length) for keywords in LISTS]
    assert essence(together) == essence(in_pairs) == essence(alone)


def test_the_seed_of_a_result_gives_its_text_without_the_filter(model):
    for result, keywords in zip(model.generate_batch(LISTS, seed=3, accept=has_even_length), LISTS, strict=True):
        assert model.generate(keywords, seed=result.seed).text == result.text


def test_after_so_many_refusals_there_is_an_error_that_counts_them(model):
    seen = []
    with pytest.raises(ValueError, match=r"refused all 4 texts drawn for 'captain ship'; loosen it"):
        model.generate(["captain", "ship"], seed=1, accept=seen.append, attempts=4)
    assert len(seen) == 4
    assert len(set(seen)) > 1  # every attempt has a seed of its own


def test_one_list_without_an_accepted_text_is_told_among_many(insnet_model):
    with pytest.raises(ValueError, match=r"drawn for 'bread', and so it went for 1 of the 6 texts asked for"):
        insnet_model.generate_batch(LISTS, seed=1, accept=lambda text: "bread" not in text, attempts=2)


def test_every_sample_is_accepted_and_they_differ(model):
    texts = [result.text for result in model.generate(["ship"], num_samples=5, seed=2, accept=has_even_length)]
    assert len(set(texts)) == 5
    assert all(map(has_even_length, texts))


def test_a_filled_blank_is_accepted_and_the_rest_kept(insnet_model):
    results = insnet_model.infill("The ___ sold ___ .", num_samples=4, seed=2, accept=has_even_length)
    assert all(has_even_length(result.text) and "sold" in result.text for result in results)


def test_in_any_order_the_best_accepted_text_is_taken(insnet_model):
    """Refusing the order that reads best gives the next best of the same draw, not a new one."""
    keywords = ["captain", "rope", "bread"]
    best = insnet_model.generate(keywords, seed=4, any_order=True)
    second = insnet_model.generate(keywords, seed=4, any_order=True, accept=lambda text: text != best.text)
    assert sorted(second.keywords) == sorted(best.keywords)
    assert second.text != best.text
    assert second.seed == best.seed


def test_progress_counts_each_text_once(model):
    counts = []
    model.generate_batch(LISTS, seed=5, accept=has_even_length, on_written=counts.append)
    assert sum(counts) == len(LISTS)


@pytest.mark.parametrize(
    ("options", "told"),
    [({"accept": "no"}, "expected a function"), ({"accept": bool, "attempts": 0}, "attempts is 0")],
)
def test_a_wrong_filter_is_told_in_one_line(insnet_model, options, told):
    with pytest.raises(ValueError, match=told):
        insnet_model.generate(["ship"], **options)


def test_a_text_still_growing_cannot_be_filtered(insnet_model):
    with pytest.raises(ValueError, match="accept chooses among finished texts"):
        next(insnet_model.stream(["ship"], accept=has_even_length))


# ---- a list of words as the filter ----


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        (("damn",), "Oh DAMN, no.", "DAMN"),
        (("damn",), "The damned dam of Amsterdam.", None),
        (("damn*",), "The damned dam.", "damned"),
        (("damn",), "a god-damn mess", "damn"),
        (("smith",), "Smith’s house", "Smith"),
        (("don't",), "I don’t know", "don't"),
        (("new york",), "in New\tYork.", "New\tYork"),
        (("new york",), "a new Yorkshire", None),
        (("a.c",), "abc", None),
        (("café",), "A CAFE\u0301 here", "CAFÉ"),
        (("fish", "shell*"), "shellfish", "shellfish"),
    ],
)
def test_words_are_found_whole_whatever_their_case(words, text, found):
    assert RefusedWords(words).found_in(text) == found


def test_a_required_word_that_is_refused_is_told_at_once():
    refused = RefusedWords(("ship*",))
    refused.check_required(["captain", "friendship"])
    with pytest.raises(ValueError, match="'ships' is both required and refused"):
        refused.check_required(["captain", "two ships"])


def test_a_file_of_words_is_read_or_refused(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("Damn\n\n go to hell \nDamn\n")
    assert RefusedWords.read(path).words == ("Damn", "go to hell")
    for content, told in (("\n", "holds no words"), ("damn\n*\n", "would refuse every text")):
        path.write_text(content)
        with pytest.raises(ValueError, match=told):
            RefusedWords.read(path)

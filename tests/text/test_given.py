import pytest
import torch

from insnet import randomness
from insnet.text.given import GivenPolicy
from insnet.text.specials import UNK

ROWS, WORDS = 4000, 20
SEEDS = randomness.mix(7, torch.arange(ROWS))


def rows(pieces_per_word=1, words=WORDS, every=2):
    """Rows of `words` words between <bos> and <eos>; every second word is a candidate."""
    length = words * pieces_per_word
    position = torch.arange(length + 4)
    inside = ((position >= 1) & (position <= length)).expand(ROWS, -1)
    starts = (~inside) | ((position - 1) % pieces_per_word == 0)
    candidate = inside & (((position - 1) // pieces_per_word) % every == 0)
    return starts, candidate, inside


def given_of(policy, **shape):
    return policy.choose(*rows(**shape), SEEDS)


def test_shares_of_nothing_fraction_and_keywords():
    nothing = given_of(GivenPolicy(none=1.0, fraction=0.0))
    assert not nothing.any()
    fraction = given_of(GivenPolicy(none=0.0, fraction=1.0))
    counts = torch.bincount(fraction.sum(dim=1), minlength=WORDS + 1)
    assert len(counts) == WORDS + 1, "from no word to all words"
    assert counts.min() > 0.7 * ROWS / (WORDS + 1) and counts.max() < 1.3 * ROWS / (WORDS + 1)
    mixed = given_of(GivenPolicy(none=0.25, fraction=0.0, keywords_max=4))
    expected_empty = 0.25 + 0.75 / 5
    assert abs((mixed.sum(dim=1) == 0).float().mean() - expected_empty) < 0.03


def test_default_shares():
    given = given_of(GivenPolicy(), every=1)
    _, candidate, _ = rows(every=1)
    many = given.sum(dim=1) > 9  # only the random fraction gives more than nine of twenty words
    assert abs(many.float().mean() - 0.3 * 11 / 21) < 0.03
    assert abs((given.sum(dim=1) == 0).float().mean() - (0.1 + 0.3 / 21 + 0.6 / 10)) < 0.03
    assert not (given & ~candidate).any()


def test_only_candidates_are_given_as_keywords_each_number_as_likely_and_each_word_as_likely():
    given = given_of(GivenPolicy(none=0.0, fraction=0.0, keywords_max=5))
    _, candidate, _ = rows()
    assert not (given & ~candidate).any()
    counts = torch.bincount(given.sum(dim=1), minlength=6) / ROWS
    assert len(counts) == 6 and (counts - 1 / 6).abs().max() < 0.03
    share = given[:, candidate[0]].float().mean(dim=0)
    assert (share - 2.5 / 10).abs().max() < 0.04


def test_there_may_be_a_least_number_of_keywords_which_fractions_do_not_heed():
    given = given_of(GivenPolicy(none=0.0, fraction=0.0, keywords_min=3, keywords_max=5))
    counts = torch.bincount(given.sum(dim=1), minlength=6) / ROWS
    assert len(counts) == 6 and counts[:3].sum() == 0 and (counts[3:] - 1 / 3).abs().max() < 0.03
    fraction = GivenPolicy(none=0.0, fraction=1.0, keywords_min=3)
    assert torch.equal(given_of(fraction), given_of(GivenPolicy(none=0.0, fraction=1.0)))
    with pytest.raises(ValueError, match="keywords_min 6 is not between 0 and keywords_max 5"):
        GivenPolicy(keywords_min=6, keywords_max=5)


def test_other_words_are_given_where_there_are_fewer_candidates_than_wanted():
    given = given_of(GivenPolicy(none=0.0, fraction=0.0, keywords_max=9), every=10)
    _, candidate, _ = rows(every=10)
    count, candidates = given.sum(dim=1), (given & candidate).sum(dim=1)
    assert torch.equal(candidates, count.clamp_max(2)), "candidates come first"
    shares = torch.bincount(count, minlength=10) / ROWS
    assert len(shares) == 10 and (shares - 1 / 10).abs().max() < 0.03, "the number says nothing about the text"


@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_words_are_given_whole(fraction):
    given = given_of(GivenPolicy(none=0.0, fraction=fraction), pieces_per_word=3, words=7)
    words = given[:, 1:22].unflatten(1, (7, 3))
    assert given.any() and (words.all(dim=2) == words.any(dim=2)).all()
    assert not given[:, 0].any() and not given[:, 22:].any()


def test_one_flagged_piece_makes_the_whole_word_a_candidate():
    starts, candidate, inside = rows(pieces_per_word=3, words=4, every=1)
    candidate = candidate & (torch.arange(candidate.shape[1]) == 5)
    given = GivenPolicy(none=0.0, fraction=0.0, keywords_max=3).choose(starts, candidate, inside, SEEDS)
    is_one_word = given.sum(dim=1) == 3
    assert is_one_word.any() and given[is_one_word][:, 4:7].all()


def test_a_rows_choice_does_not_depend_on_padding_or_neighbours():
    policy = GivenPolicy()
    starts, candidate, inside = rows()
    whole = policy.choose(starts, candidate, inside, SEEDS)
    padding = torch.zeros(1, 9, dtype=torch.bool)
    for row in range(20):
        alone = policy.choose(
            torch.cat([starts[row : row + 1], ~padding], dim=1),
            torch.cat([candidate[row : row + 1], padding], dim=1),
            torch.cat([inside[row : row + 1], padding], dim=1),
            SEEDS[row : row + 1],
        )
        assert torch.equal(alone[0, : whole.shape[1]], whole[row]) and not alone[0, whole.shape[1] :].any()


def test_given_tokens_are_sometimes_unknown_and_others_never():
    given = given_of(GivenPolicy(none=0.0, fraction=1.0))
    tokens = torch.full(given.shape, 9)
    shown = GivenPolicy(unknown=0.2).hide(tokens, given, SEEDS)
    assert (shown[~given] == 9).all() and (tokens == 9).all()
    assert abs((shown[given] == UNK).float().mean() - 0.2) < 0.02
    assert torch.equal(GivenPolicy().hide(tokens, given, SEEDS), tokens)


@pytest.mark.parametrize(
    "wrong", [{"none": -0.1}, {"none": 0.8, "fraction": 0.3}, {"keywords_max": -1}, {"unknown": 2}]
)
def test_impossible_policies_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        GivenPolicy(**wrong)


def test_numbers_of_keywords_come_as_often_as_their_shares():
    given = given_of(GivenPolicy(none=0.0, fraction=0.0, keyword_shares=(1, 0, 3)))
    counts = torch.bincount(given.sum(dim=1), minlength=4) / ROWS
    assert len(counts) == 4 and (counts - torch.tensor([0, 0.25, 0, 0.75])).abs().max() < 0.03
    with pytest.raises(ValueError, match="keyword_shares is"):
        GivenPolicy(keyword_shares=(0.0, 0.0))


def test_the_most_important_candidates_come_first_in_a_share_of_the_texts():
    starts, candidate, inside = rows()
    is_best = candidate & (torch.arange(candidate.shape[1]) % 4 == 1)  # every second candidate: 5 of 10
    importance = candidate.to(torch.uint8) + is_best
    for share, best in ((1.0, 1.0), (0.0, 0.5), (0.5, 0.75)):
        policy = GivenPolicy(none=0.0, fraction=0.0, keyword_shares=(0, 0, 1), important_first=share)
        given = policy.choose(starts, importance, inside, SEEDS)
        assert not (given & ~candidate).any()
        assert abs((given & is_best).sum() / given.sum() - best) < 0.03


def test_given_words_become_the_ends_of_phrases_in_a_share_of_the_texts():
    alone = given_of(GivenPolicy(none=0.0, fraction=0.0, keyword_shares=(0, 1)))
    phrases = given_of(GivenPolicy(none=0.0, fraction=0.0, keyword_shares=(0, 1), phrases=0.4))
    more = phrases & ~alone
    assert not (alone & ~phrases).any()
    assert abs(more.any(dim=1).float().mean() - 0.4 * (1 - 0.5**2)) < 0.04
    follows = phrases.roll(-1, dims=1) | (phrases.roll(-1, dims=1) & phrases.roll(-2, dims=1))
    assert (follows | ~more).all(), "what is brought along stands directly before a given word"
    nothing = GivenPolicy(none=0.3, fraction=0.7, phrases=1.0)
    assert torch.equal(given_of(nothing), given_of(GivenPolicy(none=0.3, fraction=0.7)))

import numpy as np
import pytest
import torch
from small_tokenizers import TOKENIZERS

from insnet.text.batching import Batches, BatchingConfig, TokenBatch
from insnet.text.given import GivenPolicy
from insnet.text.keywords import flagger
from insnet.text.marked import MarkedTokenizer, TokenizerConfig
from insnet.text.pairs import open_pair_shards, write_pair_shards
from insnet.text.shards import TokenShards, write_shards
from insnet.text.specials import BOS, EOS, PAD, UNK


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """200 different sentences of 1 to 30 words, their tokenizer and shards."""
    rng = np.random.default_rng(3)
    words = ["".join(rng.choice(list("abcdefgh"), size=rng.integers(1, 8))) for _ in range(90)]
    lines = [" ".join([f"s{n}", *rng.choice(words, size=rng.integers(0, 30))]) + "." * (n % 2) for n in range(200)]
    tokenizer = MarkedTokenizer.learn(lines, TokenizerConfig("bpe", 320, lower_case=False))

    def flag(lines):
        return [[len(group) > 1 for group in tokenizer.words(tokenizer.encode(line))] for line in lines]

    folder = tmp_path_factory.mktemp("corpus") / "train"
    write_shards(folder, lines, tokenizer, importance=flag, max_tokens=200, sentences_per_shard=64)
    return tokenizer, TokenShards(folder), lines


def batches(corpus, budget=512, shapes=4, seed=5, given=None, rank=0, world=1, shares=()):
    tokenizer, shards, _ = corpus
    config = BatchingConfig(budget, max_shapes=shapes, seed=seed, length_shares=shares)
    return Batches(shards, config, given or GivenPolicy(), tokenizer.lexicon()["starts_word"], rank, world)


def texts(tokenizer, batch):
    return [tokenizer.decode(row.tolist()) for row in batch.tokens]


def epoch_of(batches, epoch=0):
    return [batches.at(epoch, index) for index in range(batches.updates_per_epoch)]


def same(one, other):
    pairs = [(value, getattr(other, name)) for name, value in vars(one).items() if name != "order"]
    return all(value is twin is None or torch.equal(value, twin) for value, twin in pairs)


def test_every_sentence_appears_in_an_epoch_and_repeats_are_only_fill(corpus):
    tokenizer, _, lines = corpus
    source = batches(corpus)
    seen = [text for batch in epoch_of(source) for text in texts(tokenizer, batch)]
    assert set(seen) == set(lines)
    room = sum(rows for rows, _ in source.shapes)
    assert len(seen) - len(lines) < room


def test_shapes_are_few_and_within_the_budget(corpus):
    source = batches(corpus)
    met = {tuple(batch.tokens.shape) for epoch in range(2) for batch in epoch_of(source, epoch)}
    assert met == set(source.shapes) and 2 <= len(met) <= 4
    assert all(rows == 512 // width and width % 8 == 0 for rows, width in met)


def test_rows_are_framed_and_padded(corpus):
    tokenizer, _, _ = corpus
    starts_word = tokenizer.lexicon()["starts_word"]
    for batch in epoch_of(batches(corpus)):
        for row in range(len(batch.tokens)):
            length = int(batch.lengths[row])
            tokens = batch.tokens[row].tolist()
            assert tokens[0] == BOS and tokens[length - 1] == EOS and set(tokens[length:]) <= {PAD}
            assert not {BOS, EOS, PAD} & set(tokens[1 : length - 1])
            assert batch.given[row, 0] and batch.given[row, length - 1] and not batch.given[row, length:].any()
        assert torch.equal(batch.starts_word, starts_word[batch.tokens])
        assert batch.tokens.dtype == batch.seeds.dtype == batch.lengths.dtype == torch.int64


def test_no_part_of_a_word_is_given_alone_and_keywords_are_candidates(corpus):
    tokenizer, _, _ = corpus
    for batch in epoch_of(batches(corpus, given=GivenPolicy(none=0.0, fraction=0.0))):
        for row in range(len(batch.tokens)):
            ids = batch.tokens[row, 1 : batch.lengths[row] - 1].tolist()
            flags = iter(batch.given[row, 1 : batch.lengths[row] - 1].tolist())
            words = [(len(group), [next(flags) for _ in group]) for group in tokenizer.words(ids)]
            assert all(all(given) or not any(given) for _, given in words)
            others_given = any(any(given) for pieces, given in words if pieces == 1)
            candidates_left = any(not any(given) for pieces, given in words if pieces > 1)
            assert not (others_given and candidates_left), "words of several pieces were flagged: they come first"


SHARES = (0, 1, 3, 3, 1, 0.1)


@pytest.mark.parametrize("shares", [(), SHARES])
def test_any_batch_can_be_had_again_and_a_resumed_run_goes_on_the_same(corpus, shares):
    first, second = (batches(corpus, shares=shares) for _ in range(2))
    through = [first.at(*divmod(index, first.updates_per_epoch)) for index in range(40)]
    resumed = [second.at(*divmod(index, second.updates_per_epoch)) for index in range(17, 40)]
    assert all(map(same, through[17:], resumed))
    updates = batches(corpus, shares=shares).updates_per_epoch
    assert updates < 40, "the run must cross an epoch"
    assert same(through[updates + 3], batches(corpus, shares=shares).at(1, 3))
    with pytest.raises(IndexError):
        batches(corpus, shares=shares).at(0, updates)


def test_lengths_are_visited_in_the_profile_asked_for_and_repeated_texts_differ_in_what_is_given(corpus):
    source = batches(corpus, shares=SHARES)
    epochs = [batch for epoch in range(6) for batch in epoch_of(source, epoch)]
    lengths = torch.cat([batch.lengths for batch in epochs]).numpy() - 2
    found = np.bincount(lengths // 10, minlength=6) / len(lengths)
    assert found[:6] == pytest.approx(np.array(SHARES) / sum(SHARES), abs=0.03) and len(found) == 6
    seeds = torch.cat([batch.seeds for batch in epochs])
    assert len(seeds.unique()) > 0.9 * len(seeds), "what a text's noise is drawn from comes twice in fill only"
    groups = [group for bucket in source.buckets for group in bucket.groups]
    visited = np.concatenate([group.of_epoch(5, epoch).sentences for group in groups for epoch in range(40)])
    tokens = np.asarray(source.shards.lengths)[visited].sum() / 40
    assert source.mean_tokens == pytest.approx(tokens / source.updates_per_epoch, rel=0.005)
    known, source.shards = source.mean_tokens, None
    assert source.mean_tokens == known, "counted once, not at every update"
    plain = batches(corpus)
    assert plain.mean_tokens == plain.shards.summary.tokens / plain.updates_per_epoch


def test_epochs_and_seeds_differ(corpus):
    source = batches(corpus)
    assert not torch.equal(source.at(0, 0).seeds, source.at(1, 0).seeds)
    assert not torch.equal(source.at(0, 0).seeds, batches(corpus, seed=6).at(0, 0).seeds)


@pytest.mark.parametrize("length_shares", [(), SHARES])
@pytest.mark.parametrize("world", [2, 3, 4])
def test_processes_share_the_epoch_evenly(corpus, world, length_shares):
    alone = epoch_of(batches(corpus, shares=length_shares))
    shares = [epoch_of(batches(corpus, rank=rank, world=world, shares=length_shares)) for rank in range(world)]
    assert len({len(share) for share in shares}) == 1 and len(shares[0]) == -(-len(alone) // world)
    for index in range(len(shares[0]) * world):
        assert same(shares[index % world][index // world], alone[index % len(alone)])
    with pytest.raises(ValueError, match="rank"):
        batches(corpus, rank=world, world=world)


def test_a_sentences_seed_and_given_words_do_not_depend_on_the_batch(corpus):
    tokenizer, _, _ = corpus

    def by_text(source):
        return {
            tokenizer.decode(batch.tokens[row].tolist()): (int(batch.seeds[row]), batch.given[row, :length].tolist())
            for batch in epoch_of(source)
            for row, length in enumerate(batch.lengths.tolist())
        }

    assert by_text(batches(corpus)) == by_text(batches(corpus, budget=900, shapes=2))


def test_validation_sees_each_sentence_exactly_once_in_the_same_way(corpus):
    tokenizer, _, lines = corpus
    source = batches(corpus)
    once = list(source.in_order())
    assert sorted(text for batch in once for text in texts(tokenizer, batch)) == sorted(lines)
    assert all(map(same, once, batches(corpus).in_order()))
    assert all(batch.tokens.numel() <= 512 for batch in once)
    first = [text for batch in source.in_order(limit=30) for text in texts(tokenizer, batch)]
    assert sorted(first) == sorted(lines[:30])
    parts = [batch for rank in range(3) for batch in batches(corpus, rank=rank, world=3).in_order()]
    assert sorted(text for batch in parts for text in texts(tokenizer, batch)) == sorted(lines)


def test_given_words_may_be_shown_as_unknown_and_nothing_else(corpus):
    hidden = epoch_of(batches(corpus, given=GivenPolicy(unknown=0.5)))
    shown = epoch_of(batches(corpus))
    assert any((batch.tokens == UNK).any() for batch in hidden)
    for one, other in zip(hidden, shown, strict=True):
        changed = one.tokens != other.tokens
        assert (one.tokens[changed] == UNK).all() and one.given[changed].all() and torch.equal(one.given, other.given)
        assert (one.tokens[:, 0] == BOS).all() and not changed[one.tokens == EOS].any()
        assert torch.equal(one.starts_word, other.starts_word)


def test_a_batch_made_by_hand():
    starts_word = torch.ones(12, dtype=torch.bool)
    starts_word[7] = False
    batch = TokenBatch.of(
        [[6, 7, 8], [9], []],
        starts_word=starts_word,
        given=[[True, True, False], [False], []],
        seeds=[4, 5, -6],
        pad_to=6,
    )
    assert batch.tokens.tolist() == [
        [BOS, 6, 7, 8, EOS, PAD],
        [BOS, 9, EOS, PAD, PAD, PAD],
        [BOS, EOS, PAD, PAD, PAD, PAD],
    ]
    assert batch.lengths.tolist() == [5, 3, 2] and batch.seeds.tolist() == [4, 5, -6]
    assert batch.given.int().tolist() == [[1, 1, 1, 0, 1, 0], [1, 0, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0]]
    assert batch.starts_word[0].int().tolist() == [1, 1, 0, 1, 1, 1]
    plain = TokenBatch.of([[6], [7, 8]], starts_word=starts_word)
    assert plain.given.sum() == 4 and plain.seeds.tolist() == [0, 1] and plain.tokens.shape == (2, 4)
    moved = TokenBatch(**{**vars(plain), "order": plain.tokens}).to("cpu")
    assert same(moved, plain) and torch.equal(moved.order, plain.tokens) and plain.to("cpu").order is None
    with pytest.raises(ValueError, match="pad_to 3"):
        TokenBatch.of([[6, 7]], starts_word=starts_word, pad_to=3)
    with pytest.raises(ValueError, match="at least one"):
        TokenBatch.of([], starts_word=starts_word)
    with pytest.raises(ValueError, match="parallel"):
        TokenBatch.of([[6, 7], [8]], starts_word=starts_word, given=[[True], [True, False]])


def test_mismatched_settings_are_refused(corpus):
    tokenizer, shards, _ = corpus
    with pytest.raises(ValueError, match="starts_word"):
        Batches(shards, BatchingConfig(512), GivenPolicy(), torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="max_shapes"):
        BatchingConfig(512, max_shapes=0)
    with pytest.raises(ValueError, match="token_budget"):
        Batches(shards, BatchingConfig(8), GivenPolicy(), tokenizer.lexicon()["starts_word"])


def test_the_importance_of_every_token_comes_along_where_there_is_any(corpus, tmp_path):
    tokenizer, shards, lines = corpus
    [batch] = list(batches(corpus, budget=40_000, shapes=1).in_order())
    for row, length in enumerate(batch.lengths.tolist()):
        sentence = lines.index(tokenizer.decode(batch.tokens[row].tolist()))
        assert batch.importance[row, 1 : length - 1].tolist() == shards.importance(sentence).tolist()
        assert batch.importance[row, 0] == batch.importance[row, length - 1 :].sum() == 0
    assert batch.importance.dtype == torch.uint8
    write_shards(tmp_path / "x", lines, tokenizer, importance=None, max_tokens=200)
    assert batches((tokenizer, TokenShards(tmp_path / "x"), lines)).at(0, 0).importance is None


def test_pairs_keep_one_numbering_and_are_padded_to_the_longer_side(corpus, tmp_path):
    tokenizer, _, lines = corpus
    pairs = [(f"{line} {line}" if row % 3 else line[:3], line) for row, line in enumerate(lines)]
    pairs[5], pairs[9], pairs[11] = ("", "x"), ("x", " "), ("s1", "s1 " * 150)
    written = write_pair_shards(tmp_path / "pairs", lambda: iter(pairs), tokenizer, tokenizer, max_tokens=100)
    source, target = open_pair_shards(tmp_path / "pairs")
    kept = [pair for pair in pairs if all(1 <= len(tokenizer.encode(side)) <= 100 for side in pair)]
    assert [summary.sentences for summary in written] == [len(kept)] * 2 and len(pairs) > len(kept) > 100
    config = BatchingConfig(2048, max_shapes=3, seed=5)
    paired = Batches(target, config, GivenPolicy(), tokenizer.lexicon()["starts_word"], source=source)
    seen = []
    for batch in paired.in_order():
        assert batch.source.shape == batch.tokens.shape and batch.to("cpu").source_lengths.shape == batch.lengths.shape
        for row, length in enumerate(batch.source_lengths.tolist()):
            ids = batch.source[row].tolist()
            assert (ids[0], ids[length - 1], set(ids[length:]) <= {PAD}) == (BOS, EOS, True)
            seen.append((tokenizer.decode(ids), tokenizer.decode(batch.tokens[row].tolist())))
    assert sorted(seen) == sorted((" ".join(one.split()), other) for one, other in kept)
    with pytest.raises(ValueError, match="do not pair"):
        Batches(corpus[1], config, GivenPolicy(), tokenizer.lexicon()["starts_word"], source=source)


def test_a_pretrained_vocabulary_frames_texts_with_its_own_specials(tmp_path):
    lines = ["The king, in 1876.", "a king's castle", "a"]
    tokenizer = TOKENIZERS["gpt2"]
    write_shards(tmp_path / "x", lines, tokenizer, importance=flagger("tfidf", 3, lines), max_tokens=200)
    shards = TokenShards(tmp_path / "x")
    assert shards.specials == tokenizer.specials and shards.specials.pad == shards.specials.eos
    config, starts_word = BatchingConfig(512, max_shapes=1), tokenizer.lexicon()["starts_word"]
    [batch] = list(Batches(shards, config, GivenPolicy(), starts_word).in_order())
    again = TokenBatch.of(
        [tokenizer.encode(line) for line in lines],
        starts_word=starts_word,
        pad_to=batch.tokens.shape[1],
        specials=tokenizer.specials,
    )
    longest_first = batch.lengths.argsort(descending=True)
    assert torch.equal(batch.tokens[longest_first], again.tokens[again.lengths.argsort(descending=True)])
    for row, length in enumerate(batch.lengths.tolist()):
        assert batch.given[row, [0, length - 1]].all() and not batch.given[row, length:].any()
        assert tokenizer.decode(batch.tokens[row].tolist()) in lines
    flagged = {tokenizer.decode([token]) for token in batch.tokens[batch.importance > 0].tolist()}
    assert "king" in flagged and not flagged & {"The", "a", ",", "."}
    with pytest.raises(ValueError, match="knows every word"):
        Batches(shards, config, GivenPolicy(unknown=0.1), starts_word)

"""Promise 8: eight sentences are learned by heart and written back from two of their words."""

import dataclasses

import torch
from loss_terms import losses_of
from small_models import batch_of

from insnet.decoding.config import GenerationConfig
from insnet.families import FAMILIES
from insnet.model import Model
from insnet.text.marked import MarkedTokenizer, TokenizerConfig

SENTENCES = {
    "The baker sold warm bread on Sunday.": ["baker", "bread"],
    "An old sailor mended the torn sail.": ["sailor", "sail"],
    "Rain fell on the harbour all night.": ["Rain", "night"],
    "Who painted the door of the school red?": ["door", "red"],
    "Three boats came home before the storm.": ["boats", "storm"],
    "My neighbour grows beans, peas and roses.": ["neighbour", "roses"],
    "The doctor walked to the market and back.": ["doctor", "market"],
    "Our hungry cat ate the last fish.": ["cat", "fish"],
}
STEPS, MORE_STEPS = 450, {"insertion_transformer": 900}  # which sees one canvas of a text per step, not all of them
LEARNS_BOTH_MODES = {"insertion_transformer"}  # by one objective; InsNet inserts several per step only if tau says so


def given_flags(tokenizer, tokens, keywords):
    """True for the tokens of the first occurrence of every keyword."""
    flags, wanted = [], [tokenizer.encode(word) for word in keywords]
    for word in tokenizer.words(tokens):
        is_next = bool(wanted) and word == wanted[0]
        wanted = wanted[1:] if is_next else wanted
        flags += [is_next] * len(word)
    assert not wanted
    return flags


def test_eight_sentences_are_overfitted_and_generated_back(family_name, kind):
    tokenizer = MarkedTokenizer.learn(SENTENCES, TokenizerConfig(kind, 390, lower_case=False))
    assert all(tokenizer.lexicon()["generatable"][token] for line in SENTENCES for token in tokenizer.encode(line))
    torch.manual_seed(0)
    kind_of_config = FAMILIES[family_name].Config
    settings = {"width": 64, "layers": 2, "heads": 4, "dropout": 0.0}
    if "order" in {field.name for field in dataclasses.fields(kind_of_config)}:
        settings["order"] = "random_words"  # for words the same as "random"; pieces of a word come left to right
    family = FAMILIES[family_name](kind_of_config(vocabulary_size=tokenizer.size, **settings)).train()
    lists = [tokenizer.encode(line) for line in SENTENCES]
    given = [given_flags(tokenizer, t, k) for t, k in zip(lists, SENTENCES.values(), strict=True)]
    steps = MORE_STEPS.get(family_name, STEPS)
    optimizer = torch.optim.AdamW(family.parameters(), lr=2e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for step in range(steps):
        batch = batch_of(tokenizer, lists * 3, given * 3, seeds=range(24 * step, 24 * step + 24))
        loss = sum(term.nats / term.count for term in losses_of(family, batch).values())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(family.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    greedy = GenerationConfig.of(top_k=1, slot_mass=1e-9, stopping="threshold", max_tokens=40, no_repeat_ngram=0)
    model = Model(family, tokenizer, greedy)
    for mode in ("sequential", "parallel") if family_name in LEARNS_BOTH_MODES else ("sequential",):
        results = model.generate_batch(list(SENTENCES.values()), seed=0, mode=mode)
        assert [result.text for result in results] == list(SENTENCES)
        if mode == "parallel":
            assert all(result.steps < result.tokens - len(result.keywords) for result in results)

"""Byte-level tokenizers as pretrained models bring them, but with small vocabularies, learned here."""

import json

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from insnet.text.byte_level import ByteLevelTokenizer

END, START = "<|endoftext|>", "<|im_start|>"
LINES = [
    'The castle was built by the king, wasn\'t it? "Yes," he said (in 1876) — "it was."',
    "The well-known king's castle; don't go there! Costs: $5, 100% of 3.14...",
    "“Hello,” said the ‘old’ king. Cafés, naïve façades 🙂 and 你好.",
    "the king the castle the king (the castle) the “king” the 'castle' [king] {castle}",
] * 8


def learn(splitter, lines=LINES, size=420):
    """The vocabulary of a small pretrained model: specials first and in the middle, then pieces and merges."""
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = splitter
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END, START],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library.train_from_iterator(lines, trainer)
    library.add_special_tokens(["<|pad|>"])
    return json.loads(library.to_str())


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
SMOLLM = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), GPT2])
LLAMA_3 = pre_tokenizers.Sequence(
    [
        pre_tokenizers.Split(
            tokenizers.Regex(r"'s|'t|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+"), "isolated"
        ),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
)
CONTENT = {"gpt2": learn(GPT2), "smollm": learn(SMOLLM), "llama3": learn(LLAMA_3)}
TOKENIZERS = {name: ByteLevelTokenizer(content, END, END) for name, content in CONTENT.items()}

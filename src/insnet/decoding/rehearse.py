"""Lengths from rehearsals: truncation commits to small gaps and stops early, so a length can't come from truncated
decoding itself."""

from dataclasses import replace

import torch
from torch import Tensor

from insnet.decoding.choose import Chooser
from insnet.decoding.decide import Decider
from insnet.decoding.desk import Desk
from insnet.families.generator import Generator, Prompt, map_tensors
from insnet.randomness import Purpose, mix


def rehearsed(family: Generator, prompt: Prompt, chooser: Chooser, desk: Desk) -> Tensor:
    """A number of insertions (B,) for each row of a prompt: a quantile of what untruncated samples made."""
    times = chooser.config.length.rehearsals
    rows = len(prompt.seeds)
    repeated: Prompt = map_tensors(prompt, lambda tensor: tensor.repeat_interleave(times, dim=0))
    number = torch.arange(times, device=prompt.seeds.device).repeat(rows)  # row r's rehearsals stand together
    repeated = replace(repeated, seeds=mix(Purpose.REHEARSAL, repeated.seeds, number))
    inserted = torch.zeros(rows * times, dtype=torch.int64, device=prompt.seeds.device)
    decider = Decider(Chooser(chooser.config.untruncated(), chooser.lexicon))
    for step in desk.rounds(family, repeated, decider):
        inserted[step.row] += step.edits.puts().sum(dim=1)
    return inserted.view(rows, times).double().quantile(chooser.config.length_quantile, dim=1).round().long()

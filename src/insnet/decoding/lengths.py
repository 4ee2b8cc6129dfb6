"""Where a text's length comes from: rehearsals of the untruncated model, or the model's own count.

Truncation commits to small gaps and stops early, so a length can't come from truncated decoding itself.
"""

from dataclasses import replace

import torch
from torch import Tensor

from insnet.decoding.choose import Chooser
from insnet.decoding.loop import decode
from insnet.families.generator import Generator, Prompt, State, map_tensors
from insnet.insertion.constraints import Constraints, count_words
from insnet.randomness import mix, uniform

_REHEARSAL_NOISE, _COUNT_NOISE = 301, 302


def rehearsed(family: Generator, prompt: Prompt, chooser: Chooser) -> Tensor:
    """A number of insertions (B,) for each row of a prompt: a quantile of its rehearsals' numbers."""
    times = chooser.config.rehearsals
    rows = len(prompt.seeds)
    repeated = repeat_rows(prompt, times)  # row r's rehearsals stand together
    number = torch.arange(times, device=prompt.seeds.device).repeat(rows)
    repeated = replace(repeated, seeds=mix(_REHEARSAL_NOISE, repeated.seeds, number))
    inserted = torch.zeros(rows * times, dtype=torch.int64, device=prompt.seeds.device)
    for step in decode(family, repeated, Chooser(chooser.config.untruncated(), chooser.lexicon)):
        inserted[step.row] += step.edits.puts().sum(dim=1)
    return inserted.view(rows, times).double().quantile(chooser.config.length_quantile, dim=1).round().long()


def with_length(prompt: Prompt, insertions: Tensor, chooser: Chooser) -> Prompt:
    """The prompt of texts that end after so many insertions (B,), or a little earlier or later."""
    return replace(prompt, constraints=_of_length(prompt.constraints, insertions, chooser))


@torch.no_grad()
def counted(family: Generator, prompt: Prompt, chooser: Chooser) -> State:
    """The prompt's state with each row's number of insertions set to what the count head expects, and some slack."""
    state = family.start(prompt)
    log_probs = family.count_log_probs(state)
    if log_probs is None:
        raise ValueError("stopping is 'counted', but this model has no count head; use rehearsed, threshold or sampled")
    log_probs = _within_bounds(log_probs, prompt, chooser)
    noise, config = uniform(_COUNT_NOISE, prompt.seeds), chooser.config
    quantile = config.length_quantile + config.count_spread * (2 * noise - 1)
    if config.stopping == "sampled":
        quantile = noise
    is_below = log_probs.double().exp().cumsum(dim=1) < quantile[:, None]
    count = is_below.sum(dim=1).clamp_max(log_probs.shape[1] - 1)
    return replace(state, constraints=_of_length(state.constraints, count, chooser))


def _within_bounds(log_probs: Tensor, prompt: Prompt, chooser: Chooser) -> Tensor:
    """The distribution (B, N) over counts that can meet the bounds on words and tokens, if any can.

    An insertion makes at most one word, so a text must get as many as it lacks words; and, punctuation aside, no more
    than it may have.
    """
    limits = prompt.constraints
    words = count_words(prompt.canvas, chooser.lexicon, limits.word_correction)[:, None]
    count = torch.arange(log_probs.shape[1], device=log_probs.device)[None, :]
    fits = (count >= limits.min_words[:, None] - words) & (count <= limits.max_words[:, None] - words)
    fits = fits & (count <= limits.max_tokens[:, None])
    fitting = log_probs.masked_fill(~fits, -torch.inf).log_softmax(dim=1)
    return torch.where(fits.any(dim=1, keepdim=True), fitting, log_probs)


def _of_length(constraints: Constraints, insertions: Tensor, chooser: Chooser) -> Constraints:
    slack = (insertions * chooser.config.length_slack).long()
    return replace(constraints, insertions=insertions, slack=slack)


def repeat_rows(prompt: Prompt, times: int) -> Prompt:
    """The prompt with every row `times` in a row."""
    repeated: Prompt = map_tensors(prompt, lambda tensor: tensor.repeat_interleave(times, dim=0))
    return repeated

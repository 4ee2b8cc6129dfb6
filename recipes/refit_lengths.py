"""Fits a model's count head anew, all else as it is: python recipes/refit_lengths.py RECIPE MODEL OUTPUT.

A model that is told its length decides it once, from <bos>, <eos> and the given words; so that much is encoded of each
training text, and a softmax regression on these encodings is the whole fit: minutes on a CPU. Every tenth batch judges.
Shapes: B texts, G given tokens, D width, N counts.
"""

import argparse
import shutil
from pathlib import Path

import torch
from torch import Tensor

from insnet.families.generator import sentence_of_batch
from insnet.families.insnet import InsNet
from insnet.families.storage import load_model, save_model
from insnet.insertion.offsets import offsets_of_order
from insnet.insertion.order import position_of_step
from insnet.text.batching import Batches, BatchingConfig, TokenBatch
from insnet.training.prepare import load_prepared
from insnet.training.recipe import load_recipe

EPOCHS, BATCH, LEARNING_RATE = 30, 1024, 3e-4
JUDGING = 10  # one batch in so many is kept to judge by


@torch.no_grad()
def prompts_of_batch(model: InsNet, batch: TokenBatch) -> tuple[Tensor, Tensor]:
    """What the count is decided from (B, D), and the count (B,)."""
    given = batch.given.sum(dim=1)
    order = position_of_step(model.config.orders[0], sentence_of_batch(batch))
    tokens = batch.tokens.gather(1, order)
    newest = torch.empty(len(given), model.config.width)
    for rows in given.argsort().split(32):  # alike in length: most prompts are short
        longest = int(given[rows].max())
        embedded = model.embed(tokens[rows, :longest], torch.zeros_like(rows))  # (B, G, D)
        encoded = model.encoder(embedded, offsets_of_order(order[rows, :longest]))
        newest[rows] = encoded[torch.arange(len(rows)), given[rows] - 1]
    return newest, (batch.lengths - given).clamp_max(model.config.count_head)


def fit(head: torch.nn.Linear, learned: tuple[Tensor, Tensor], judged: tuple[Tensor, Tensor]) -> None:
    """The head with the lowest loss on what judges, on the way through the epochs."""
    optimizer = torch.optim.Adam(head.parameters(), lr=LEARNING_RATE)
    steps = EPOCHS * -(-len(learned[1]) // BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    best, kept = told(head, judged, "before"), {name: value.clone() for name, value in head.state_dict().items()}
    noise = torch.Generator().manual_seed(0)
    for epoch in range(1, EPOCHS + 1):
        for rows in torch.randperm(len(learned[1]), generator=noise).split(BATCH):
            torch.nn.functional.cross_entropy(head(learned[0][rows]), learned[1][rows]).backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
        loss = told(head, judged, f"epoch {epoch}") if epoch % 3 == 0 else best
        if loss < best:
            best, kept = loss, {name: value.clone() for name, value in head.state_dict().items()}
    head.load_state_dict(kept)
    told(head, judged, "kept")


@torch.no_grad()
def told(head: torch.nn.Linear, judged: tuple[Tensor, Tensor], when: str) -> float:
    """Nats a count; says them, and how the mean count compares."""
    logits = head(judged[0])
    loss = float(torch.nn.functional.cross_entropy(logits, judged[1]))
    mean = float((logits.softmax(dim=1) * torch.arange(logits.shape[1])).sum(dim=1).mean())
    print(f"{when}: {loss:.4f} nats, mean count {mean:.2f}, true {judged[1].double().mean():.2f}", flush=True)
    return loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("recipe", "model", "output"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--texts", type=int, default=24_000)
    arguments = parser.parse_args()
    recipe = load_recipe(arguments.recipe)
    prepared = load_prepared(recipe)
    model = load_model(arguments.model, "cpu")
    assert isinstance(model, InsNet) and model.config.length_conditioned, "only a model that is told its length"
    starts_word = prepared.tokenizer.lexicon()["starts_word"]
    anyhow = BatchingConfig(token_budget=65536, max_shapes=1, seed=1)  # one shape: a batch holds texts of every length
    batches = Batches(prepared.train, anyhow, recipe.given, starts_word)
    pieces: list[tuple[Tensor, Tensor]] = []
    while sum(len(counts) for _, counts in pieces) < arguments.texts:
        pieces.append(prompts_of_batch(model, batches.at(0, len(pieces))))
    learned = [piece for number, piece in enumerate(pieces) if number % JUDGING]
    fit(
        model.stop_head,
        (torch.cat([piece[0] for piece in learned]), torch.cat([piece[1] for piece in learned])),
        (torch.cat([piece[0] for piece in pieces[::JUDGING]]), torch.cat([piece[1] for piece in pieces[::JUDGING]])),
    )
    shutil.copytree(arguments.model, arguments.output, ignore=shutil.ignore_patterns("*.safetensors*", "checkpoints"))
    save_model(arguments.output, model)


if __name__ == "__main__":
    main()

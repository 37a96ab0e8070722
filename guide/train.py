"""Train the guide: ``python -m guide.train [--threads N]``.

Resumes from build/guide when a run was cut short. Ends by writing the model directory that llmd ships.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from guide import tokens
from guide.batches import block
from guide.corpus import Corpus
from guide.decontamination import Heldout, wordings
from guide.development import development_score
from guide.export import write_model
from guide.model import Guide, Shape
from guide.topics import load

HERE = Path(__file__).parent
WORK = HERE.parent / "build" / "guide"
LOG = HERE / "training-log.csv"
TOKENIZER_CONVERSATIONS = 40_000
TOKENIZER_SEED = 1_000_000_007  # far from the block numbers, which are the seeds of the training text


@dataclass(frozen=True)
class Plan:
    """How long and how hard to train."""

    steps: int = 3600
    warmup: int = 80
    decay: int = 1200  # last steps, over which the rate falls to zero
    rate: float = 4e-3  # of the layers' matrices
    embedding_rate: float = 2e-3  # of the embedding and the norms
    batch_tokens: int = 4000
    longest: int = 768
    bpe_dropout: float = 0.03
    seed: int = 1
    report: int = 100

    def share_at(self, step: int) -> float:
        """Share of the learning rates: rise, plateau, linear fall."""
        return min(1.0, (step + 1) / self.warmup, (self.steps - step) / self.decay)


@dataclass
class Progress:
    """What a checkpoint holds beside weights and optimiser states."""

    step: int = 0
    block: int = 0
    trained_tokens: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)


class Trainer:
    """Model, optimisers and progress of one run. The network computes in bf16; the optimisers keep f32 weights."""

    def __init__(self, plan: Plan, shape: Shape) -> None:
        torch.manual_seed(plan.seed)
        self.plan, self.progress = plan, Progress()
        self.master = Guide(shape)
        self.model = Guide(shape).bfloat16()
        self._pairs = list(zip(self.master.parameters(), self.model.parameters(), strict=True))
        self._compiled = torch.compile(self.model, dynamic=True)
        hidden = [weight for weight in self.master.layers.parameters() if weight.dim() == 2]
        others = [self.master.embedding.weight, *(w for w in self.master.parameters() if w.dim() == 1)]
        self.optimizers: dict[torch.optim.Optimizer, float] = {
            torch.optim.Muon(hidden, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"): plan.rate,
            torch.optim.AdamW(others, betas=(0.9, 0.95), weight_decay=0.0, fused=True): plan.embedding_rate,
        }
        self._publish()

    def step(self, ids: Tensor, weights: Tensor) -> None:
        """One update from ids and loss weights, both [batch, length]."""
        began = time.monotonic()
        loss = self._loss(ids, weights)
        loss.backward()
        for master, weight in self._pairs:
            master.grad, weight.grad = weight.grad.float(), None
        nn.utils.clip_grad_norm_(self.master.parameters(), 1.0)
        for optimizer, rate in self.optimizers.items():
            for group in optimizer.param_groups:
                group["lr"] = rate * self.plan.share_at(self.progress.step)
            optimizer.step()
        self._publish()
        self.progress.step += 1
        self.progress.trained_tokens += int((weights >= 0).sum())
        self.progress.losses.append(loss.item())
        self.progress.seconds += time.monotonic() - began

    def save(self, path: Path) -> None:
        """Write a checkpoint that replaces the last one in one move."""
        state = {"model": self.master.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers]}
        torch.save({**state, "progress": vars(self.progress)}, path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint, or begin a new log."""
        if not path.exists():
            LOG.unlink(missing_ok=True)
            return
        state = torch.load(path)
        self.master.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.progress = Progress(**state["progress"])
        self._publish()
        _forget_rows_after(self.progress.step, LOG)

    @torch.no_grad()
    def _publish(self) -> None:
        for master, weight in self._pairs:
            weight.copy_(master)

    def _loss(self, ids: Tensor, weights: Tensor) -> Tensor:
        targets, scale = ids[:, 1:].flatten(), weights[:, 1:].flatten()
        places = scale.nonzero().flatten()
        logits = self._compiled(ids[:, :-1].contiguous(), places)
        losses = functional.cross_entropy(logits.float(), targets[places], reduction="none")
        return (losses * scale[places]).sum() / scale.sum()


def _tokenizer(corpus: Corpus, vocab: int) -> Tokenizer:
    path = WORK / "tokenizer.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        sample = islice(corpus.conversations(TOKENIZER_SEED), TOKENIZER_CONVERSATIONS)
        tokens.train(sample, vocab).save(str(path))
    return Tokenizer.from_file(str(path))


def _report(progress: Progress, rate: float, score: float, path: Path) -> None:
    mean = sum(progress.losses) / len(progress.losses)
    row = (
        progress.step,
        progress.trained_tokens,
        round(progress.seconds),
        f"{rate:.2e}",
        f"{mean:.4f}",
        f"{score:.3f}",
    )
    progress.losses.clear()
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(("step", "tokens", "seconds", "rate", "loss", "development"))
        writer.writerow(row)
    print("step {} · {} tokens · {} s · rate {} · loss {} · development {}".format(*row), flush=True)


def _forget_rows_after(step: int, path: Path) -> None:
    """Steps after the checkpoint are done again, and logged again."""
    title, *rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text(
        title + "".join(row for row in rows if int(row.partition(",")[0]) <= step), encoding="utf-8"
    )


def _batches(trainer: Trainer, corpus: Corpus, encoder: tokens.Encoder) -> Iterator[tuple[Tensor, Tensor]]:
    plan = trainer.plan
    while trainer.progress.step < plan.steps:
        trainer.save(WORK / "checkpoint.pt")
        torch.manual_seed(trainer.progress.block)
        yield from block(corpus, encoder, trainer.progress.block, plan.batch_tokens, plan.longest)
        trainer.progress.block += 1


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--threads", type=int, default=torch.get_num_threads())
    torch.set_num_threads(arguments.parse_args().threads)
    torch.set_flush_denormal(True)
    plan, shape, book = Plan(), Shape(), load()
    corpus = Corpus(book, Heldout(wordings()))
    tokenizer = _tokenizer(corpus, shape.vocab)
    encoder = tokens.Encoder(tokenizer, plan.bpe_dropout)
    trainer = Trainer(plan, shape)
    trainer.resume(WORK / "checkpoint.pt")
    for ids, weights in _batches(trainer, corpus, encoder):
        if trainer.progress.step == plan.steps:
            break
        trainer.step(ids, weights)
        if trainer.progress.step % plan.report == 0:
            score = development_score(trainer.model, encoder, book)
            _report(trainer.progress, plan.rate * plan.share_at(trainer.progress.step), score, LOG)
    write_model(trainer.master, tokenizer)


if __name__ == "__main__":
    main()

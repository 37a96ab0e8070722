"""Train the guide: ``python -m guide.train [--continue] [--threads N]``.

Without ``--continue`` it trains a tokenizer and new weights; with it, the weights that llmd ships are trained further, and
their tokenizer stays. Resumes from build/guide when a run was cut short. Ends by writing the model directory that llmd
ships.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from guide import tokens
from guide.batches import block
from guide.corpus import Corpus
from guide.decontamination import Heldout, wordings
from guide.development import development_score
from guide.export import DIRECTORY, write_model
from guide.log import Log
from guide.model import Guide, Shape
from guide.topics import Book, load

HERE = Path(__file__).parent
WORK = HERE.parent / "build" / "guide"
TOKENIZER_CONVERSATIONS = 40_000
TOKENIZER_SEED = 1_000_000_007  # far from the block numbers, which are the seeds of the training text


@dataclass(frozen=True)
class Plan:
    """How long and how hard to train. ``log`` and ``checkpoint`` name the files of this stage; ``first_block`` is the seed of
    its first text; ``kept`` is the share of the weights that it began from in those that it ends with.
    """

    log: str = "training-log.csv"
    checkpoint: str = "checkpoint.pt"
    first_block: int = 0
    steps: int = 4700
    warmup: int = 100
    decay: int = 1600  # last steps, over which the rate falls to zero
    rate: float = 2e-3
    batch_tokens: int = 8000
    longest: int = 768
    bpe_dropout: float = 0.06
    seed: int = 1
    report: int = 100
    kept: float = 0.0

    def rate_at(self, step: int) -> float:
        """Learning rate: rise, plateau, and a fall that is steep at first (Hägele et al. 2024, "1-sqrt")."""
        fallen = max(0.0, 1 - (self.steps - step) / self.decay)
        return self.rate * min(1.0, (step + 1) / self.warmup, 1 - fallen**0.5)


# From weights that are trained already: a lower rate, and text that they have not seen.
CONTINUED = Plan(
    log="training-log-third.csv",
    checkpoint="third.pt",
    first_block=2_000_000,
    steps=900,
    warmup=40,
    decay=640,
    rate=1.5e-3,
    kept=0.3,
)


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
        self.plan, self.progress = plan, Progress(block=plan.first_block)
        self.log = Log(HERE / plan.log)
        self.origin: dict[str, Tensor] = {}
        self.master = Guide(shape)
        self.model = Guide(shape).bfloat16()
        self._pairs = list(zip(self.master.parameters(), self.model.parameters(), strict=True))
        self._compiled = torch.compile(self.model, dynamic=True)
        hidden = [weight for weight in self.master.layers.parameters() if weight.dim() == 2]
        others = [self.master.embedding.weight, *(w for w in self.master.parameters() if w.dim() == 1)]
        self.optimizers: tuple[torch.optim.Optimizer, ...] = (
            torch.optim.Muon(hidden, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
        )
        self._publish()

    def step(self, ids: Tensor, weights: Tensor) -> None:
        """One update from ids and loss weights, both [batch, length]."""
        began = time.monotonic()
        loss = self._loss(ids, weights)
        loss.backward()
        for master, weight in self._pairs:
            master.grad, weight.grad = weight.grad.float(), None
        nn.utils.clip_grad_norm_(self.master.parameters(), 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.plan.rate_at(self.progress.step)
            optimizer.step()
        self._publish()
        self.progress.step += 1
        self.progress.trained_tokens += int((weights >= 0).sum())
        self.progress.losses.append(loss.item())
        self.progress.seconds += time.monotonic() - began

    def row(self, development: float) -> dict[str, object]:
        """A line of the log; the loss is the mean since the last one."""
        losses, self.progress.losses = self.progress.losses, []
        return {
            "step": self.progress.step,
            "tokens": self.progress.trained_tokens,
            "seconds": round(self.progress.seconds),
            "rate": f"{self.plan.rate_at(self.progress.step):.2e}",
            "loss": f"{sum(losses) / len(losses):.4f}",
            "development": f"{development:.3f}",
        }

    def save(self, path: Path) -> None:
        """Write a checkpoint that replaces the last one in one move."""
        state = {"model": self.master.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers]}
        state |= {"progress": vars(self.progress), "origin": self.origin}
        torch.save(state, path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)

    @torch.no_grad()
    def start_from(self, directory: Path) -> None:
        """Begin with the weights of a model directory."""
        self.origin = load_file(directory / "model.safetensors")
        for name, weight in self.master.checkpoint():
            weight.copy_(self.origin[name])
        self._publish()

    @torch.no_grad()
    def blend(self) -> None:
        """Mix the weights that training began from into those that it ended with, so that what was known is forgotten less
        (WiSE-FT, Wortsman et al. 2022).
        """
        if self.plan.kept:
            for name, weight in self.master.checkpoint():
                weight.lerp_(self.origin[name].float(), self.plan.kept)

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint, or begin a new log."""
        if not path.exists():
            self.log.begin()
            return
        state = torch.load(path)
        self.master.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.progress, self.origin = Progress(**state["progress"]), state["origin"]
        self._publish()
        self.log.forget_after(self.progress.step)

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


def _batches(trainer: Trainer, corpus: Corpus, encoder: tokens.Encoder) -> Iterator[tuple[Tensor, Tensor]]:
    plan = trainer.plan
    while trainer.progress.step < plan.steps:
        trainer.save(WORK / plan.checkpoint)
        yield from block(corpus, encoder, trainer.progress.block, plan.batch_tokens, plan.longest)
        trainer.progress.block += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--continue", dest="continued", action="store_true")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_flush_denormal(True)
    plan, shape, book = CONTINUED if arguments.continued else Plan(), Shape(), load()
    corpus = Corpus(book, Heldout(wordings()))
    trainer = Trainer(plan, shape)
    if arguments.continued:
        WORK.mkdir(parents=True, exist_ok=True)
        tokenizer = Tokenizer.from_file(str(DIRECTORY / "tokenizer.json"))
        trainer.start_from(DIRECTORY)
    else:
        tokenizer = _tokenizer(corpus, shape.vocab)
    encoder = tokens.Encoder(tokenizer, plan.bpe_dropout)
    trainer.resume(WORK / plan.checkpoint)
    _train(trainer, corpus, encoder, book)
    trainer.save(WORK / plan.checkpoint)
    trainer.blend()
    write_model(trainer.master, tokenizer)


def _train(trainer: Trainer, corpus: Corpus, encoder: tokens.Encoder, book: Book) -> None:
    for ids, weights in _batches(trainer, corpus, encoder):
        if trainer.progress.step == trainer.plan.steps:
            break
        trainer.step(ids, weights)
        if trainer.progress.step % trainer.plan.report == 0:
            row = trainer.row(development_score(trainer.model, encoder, book))
            trainer.log.write(row)
            print(*(f"{name} {value} ·" for name, value in row.items()), flush=True)


if __name__ == "__main__":
    main()

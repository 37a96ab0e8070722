"""The state of one run of training: weights, optimisers and progress."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from guide.batches import Batch
from guide.log import Log
from guide.model import Guide, Shape
from guide.plan import Plan

HERE = Path(__file__).parent


@dataclass
class Progress:
    """What a checkpoint contains in addition to weights and optimiser states.

    ``seconds`` is the time since training began, without the time between an interrupted run and the next.
    """

    step: int = 0
    block: int = 0
    trained_tokens: int = 0
    seconds: float = 0.0
    losses: list[Tensor] = field(default_factory=list)


class Trainer:
    """Model, optimisers and progress of one run.
    The network computes in bf16; the optimisers keep f32 weights.
    """

    def __init__(self, plan: Plan, shape: Shape, device: torch.device) -> None:
        torch.manual_seed(plan.seed)
        self.plan, self.progress = plan, Progress(block=plan.first_block)
        self.log = Log(HERE / plan.log)
        self.master = Guide(shape).to(device)
        self.model = Guide(shape).to(device, torch.bfloat16)
        self._device, self._looked = device, time.monotonic()
        self._pairs = list(zip(self.master.parameters(), self.model.parameters(), strict=True))
        self._compiled = torch.compile(self.model, dynamic=True)
        hidden = [weight for weight in self.master.layers.parameters() if weight.dim() == 2]
        others = [self.master.embedding.weight, *(w for w in self.master.parameters() if w.dim() == 1)]
        self.optimizers: tuple[torch.optim.Optimizer, ...] = (
            torch.optim.Muon(hidden, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
        )
        self._publish()

    @property
    def done(self) -> float:
        """Share of the plan that is done."""
        return self.plan.done(self.progress.step, self.progress.seconds)

    def step(self, batch: Batch) -> None:
        """One update. It does not wait for a GPU to end it."""
        loss = self._loss(batch)
        loss.backward()
        for master, weight in self._pairs:
            master.grad, weight.grad = weight.grad.float(), None
        nn.utils.clip_grad_norm_(self.master.parameters(), 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.plan.rate_at(self.progress.step, self.done)
            optimizer.step()
        self._publish()
        self.progress.step += 1
        self.progress.trained_tokens += batch.ids.size
        self.progress.losses.append(loss.detach())
        looked, self._looked = self._looked, time.monotonic()
        self.progress.seconds += self._looked - looked

    def row(self, development: float, refused: float) -> dict[str, object]:
        """A line of the log; the loss is the mean since the last one."""
        losses, self.progress.losses = self.progress.losses, []
        return {
            "step": self.progress.step,
            "tokens": self.progress.trained_tokens,
            "seconds": round(self.progress.seconds),
            "rate": f"{self.plan.rate_at(self.progress.step, self.done):.2e}",
            "loss": f"{torch.stack(losses).mean().item():.4f}",
            "development": f"{development:.3f}",
            "refused": f"{refused:.3f}",
        }

    def save(self, path: Path) -> None:
        """Write a checkpoint that replaces the last one in one move."""
        state = {"model": self.master.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers]}
        state |= {"progress": vars(self.progress)}
        torch.save(state, path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)

    @torch.no_grad()
    def start_from(self, directory: Path) -> None:
        """Begin with the weights of a model directory."""
        weights = load_file(directory / "model.safetensors", device=str(self._device))
        for name, weight in self.master.checkpoint():
            weight.copy_(weights[name])
        self._publish()

    @torch.no_grad()
    def temper(self, temperature: float) -> None:
        """Divide the logits of the final weights by a temperature: the likeliest token stays."""
        self.master.norm.div_(temperature)

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint, or begin a new log."""
        if not path.exists():
            self.log.begin()
            return
        state = torch.load(path, map_location=self._device)
        self.master.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.progress = Progress(**state["progress"])
        self._publish()
        self.log.forget_after(self.progress.step)

    @torch.no_grad()
    def _publish(self) -> None:
        for master, weight in self._pairs:
            weight.copy_(master)

    def _loss(self, batch: Batch) -> Tensor:
        """Mean loss over the guide's own tokens."""
        ids = self._moved(batch.ids).long()
        places = self._moved(np.flatnonzero(batch.own[:, 1:]))
        logits = self._compiled(ids[:, :-1].contiguous(), places)
        return functional.cross_entropy(logits.float(), ids[:, 1:].flatten()[places])

    def _moved(self, array: NDArray[np.generic]) -> Tensor:
        """The array on the device; the copy to a GPU, from pinned memory, is not waited for."""
        tensor = torch.from_numpy(array)
        if self._device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self._device, non_blocking=True)

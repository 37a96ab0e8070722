"""How long and how hard to train."""

from __future__ import annotations

from dataclasses import dataclass

from guide.corpus import TOOLS_SHARE


@dataclass(frozen=True)
class Plan:
    """One stage of training. ``log`` and ``checkpoint`` name its files; ``first_block`` is the seed of its
    first text, and ``block`` the number of conversations from one seed; ``minutes``, where given, replace
    ``steps``; ``tools_share`` of the conversations offer tools.
    """

    log: str = "training-log.csv"
    checkpoint: str = "checkpoint.pt"
    first_block: int = 0
    block: int = 2048
    steps: int = 4700
    minutes: float | None = None
    warmup: int = 100  # first steps, over which the rate rises
    decay: float = 0.34  # share of training at its end, over which the rate falls to zero
    rate: float = 2e-3
    batch_tokens: int = 8000
    longest: int = 768
    tools_share: float = TOOLS_SHARE
    bpe_dropout: float = 0.06
    seed: int = 1
    report: int = 100

    def done(self, step: int, seconds: float) -> float:
        """Return the share of training, 0 to 1, that is done after this many steps and seconds."""
        return min(1.0, seconds / (60 * self.minutes) if self.minutes else step / self.steps)

    def rate_at(self, step: int, done: float) -> float:
        """Learning rate when a share ``done`` of training is:
        rise, plateau, and a fall that is steep at first (Hägele et al. 2024, "1-sqrt").
        """
        fallen = max(0.0, 1 - (1 - done) / self.decay)
        return self.rate * min(1.0, (step + 1) / self.warmup, 1 - fallen**0.5)


ON_PROCESSOR = Plan()
# Nine minutes of an H100.
ON_GPU = Plan(block=16384, steps=10600, warmup=300, decay=0.4, rate=3e-3, batch_tokens=32768, report=250)
# From weights that are trained already, on text that they have not seen: as long as it takes to learn new
# wordings, at a lower rate, since the other topics stay. The fourth stage had few conversations with
# tools, the longest, and forgot some of them. Log and blocks are those of the twelfth stage; a further one
# needs others.
CONTINUED = Plan(
    log="training-log-twelfth.csv",
    checkpoint="twelfth.pt",
    first_block=12_000_000,
    steps=2000,
    warmup=60,
    decay=0.8,
    rate=9e-4,
    tools_share=0.14,
    report=50,
)


def plan_for(device: str, *, continued: bool) -> Plan:
    """The plan of a first or a further stage on a kind of device, as torch names it."""
    if continued:
        return CONTINUED
    return ON_PROCESSOR if device == "cpu" else ON_GPU

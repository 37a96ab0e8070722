"""Measures what adapters cost: steps of a model with eight of them, and of the same model without any.

    python -m bench.adapters [--layers N] [--seconds S]

Both models have random weights in ``q4`` and the shape of Llama 3.2 1B. Each adapter has rank 16 and changes
all linear layers. The steps take turns; a figure is the median of the ratios of one turn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping

import numpy as np

from llmd.api import BLOCK_LEN, Device, Linear, LowRank, ModelPlan, StageLimits, Step, TensorRef
from llmd.api.machine import num_processors
from llmd.builtin.architectures.llama import plan as plan_llama
from llmd.models.adapters.adapted_plan import adapted
from llmd.models.lowering import lower
from llmd.profiling.repeated_source import RepeatedSource
from llmd.testing.selections import plain_selection
from llmd_backend_cpu.device import CpuDevice

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256, "hidden_size": 2048,
    "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
    "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": True, "hidden_act": "silu",
    "max_position_embeddings": 4096,
}  # fmt: skip
NUM_ADAPTERS = 8
RANK = 16
LIMIT_S = 60.0
ROWS = 256
CONTEXT = 512


class Model:
    """A model on a device, for steps of several sequences at position 0."""

    def __init__(self, device: Device, plan: ModelPlan) -> None:
        adapters: set[str] = set()

        def format_of(kind: str, ref: TensorRef) -> str:
            if kind == "adapt":
                adapters.add(ref.name)
            return "q4" if kind in {"linear", "head"} and ref.is_matrix else "bf16"

        self.program = lower(plan, 0, len(plan.parts), format_of=format_of)
        self._weights = device.load(self.program, RepeatedSource(), lambda _done, _total: None)
        limits = StageLimits(ROWS, NUM_ADAPTERS, NUM_ADAPTERS, max_adapters=NUM_ADAPTERS)
        self._blocks = CONTEXT // BLOCK_LEN
        pools = {group.id: self._blocks * NUM_ADAPTERS for group in self.program.groups}
        self._stage = self._weights.stage(pools, limits)

    def seconds(self, sequences: int, rows: int, adapters: tuple[int, ...] = ()) -> float:
        """Return the seconds of a step of ``rows`` rows for each sequence."""
        table = np.arange(self._blocks * sequences, dtype=np.int32).reshape(sequences, -1)
        step = Step(
            token_ids=np.arange(rows * sequences, dtype=np.int32),
            positions=np.tile(np.arange(rows, dtype=np.int32), sequences),
            row_offsets=np.arange(0, rows * sequences + 1, rows, dtype=np.int32),
            block_tables=(table,) * len(self.program.groups),
            copies=np.zeros((0, 3), np.int32),
            adapters=np.array(adapters, np.int32) if adapters else None,
        )
        ends = [rows * (number + 1) - 1 for number in range(sequences)]
        began = time.perf_counter()
        ticket = self._stage.submit(step, None, plain_selection(ends))
        self._stage.wait(ticket, LIMIT_S)
        seconds = time.perf_counter() - began
        self._stage.release(ticket)
        return seconds


def llama(layers: int) -> ModelPlan:
    """Return the plan of the model without adapters."""
    return plan_llama({**CONFIG, "num_hidden_layers": layers}, CONTEXT)


def with_eight(plan: ModelPlan) -> ModelPlan:
    """Return the plan with the adapters."""
    weights = {w for part in plan.parts for op in part.ops if isinstance(op, Linear) for w in op.weights}
    return adapted(plan, [_changes(weights, number) for number in range(NUM_ADAPTERS)])


def _changes(weights: set[TensorRef], number: int) -> Mapping[str, LowRank]:
    found = {}
    for weight in weights:
        outputs, inputs = weight.whole_shape
        a = TensorRef(f"{number}.{weight.name}.a", (RANK, inputs))
        b = TensorRef(f"{number}.{weight.name}.b", (outputs, RANK))
        found[weight.name] = LowRank(a, b, 1.0)
    return found


def main() -> None:
    """Print a table of ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20.0, help="for each line")
    args = parser.parse_args()
    device = CpuDevice()
    plan = llama(args.layers)
    plain, eight = Model(device, plan), Model(device, with_eight(plan))
    several = tuple(range(NUM_ADAPTERS))
    half = tuple(number if number % 2 else -1 for number in several)
    print(f"{device.info.description}, {num_processors()} processors, {args.layers} layers, q4")
    for name, sequences, rows, adapters in (
        ("decode, 1 row, none", 1, 1, ()),
        ("decode, 8 rows, none", 8, 1, ()),
        ("prefill, 256 rows, none", 1, 256, ()),
        ("decode, 1 row with an adapter", 1, 1, (0,)),
        ("decode, 8 rows, 4 with adapters", 8, 1, half),
        ("decode, 8 rows with 8 adapters", 8, 1, several),
        ("prefill, 256 rows with an adapter", 1, 256, (0,)),
    ):
        plain.seconds(sequences, rows), eight.seconds(sequences, rows, adapters)
        turns = []
        until = time.perf_counter() + args.seconds
        while time.perf_counter() < until:
            # The order alternates, so that neither is always the first.
            first = plain.seconds(sequences, rows), eight.seconds(sequences, rows, adapters)
            second = eight.seconds(sequences, rows, adapters), plain.seconds(sequences, rows)
            turns.append((first[0] + second[1], first[1] + second[0]))
        ratio = float(np.median([b / a for a, b in turns]))
        base = float(np.median([a for a, _ in turns])) / 2
        print(f"{name:36} {base * 1e3:8.2f} ms  {ratio:.3f}  ({len(turns)} turns)", flush=True)


if __name__ == "__main__":
    main()

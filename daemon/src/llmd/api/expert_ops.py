"""The ops of mixtures of experts: which experts a row uses, and their weighted sum.

Source: Shazeer et al. 2017, "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts
Layer".
"""

from __future__ import annotations

from typing import ClassVar, Literal

from llmd.api.activations import Activation
from llmd.api.base_op import BaseOp
from llmd.api.tensors import TensorRef

Score = Literal["softmax", "sigmoid", "sqrt_softplus"]
"""How the logits of a router become scores: ``softmax`` over all experts, or of each logit its ``sigmoid`` or
``sqrt(log(1 + exp(logit)))``."""

GroupScore = Literal["largest", "sum_of_two"]
"""The score of a group of experts: its largest score, or the sum of its two largest ones."""


def used_share(num_experts: int, top_k: int, rows: float) -> float:
    """Return the expected share of the experts of a layer that some of ``rows`` rows uses.

    Each row uses ``top_k`` of them. If rows choose at random, ``num_experts`` times this share is the number
    of distinct experts: E * (1 - (1 - k/E) ** n).
    """
    return float(1.0 - (1.0 - top_k / num_experts) ** rows)


class Router(BaseOp, frozen=True, tag="router"):
    """The weight of each expert for each row: ``out`` is ``[rows, experts]``, 0 for experts not used.

    Scores are ``score(x @ weight.T * scale + bias)``. The ``top_k`` experts with the largest scores plus
    ``correction`` are used, of equal ones the first. Their weights are their scores: if they are
    ``normalized``, divided by their sum; then times ``factor`` and ``gains``. The router rounds neither rows
    nor weights.

    With ``groups``, experts are split into as many equal ranges, and only those of the ``top_groups`` groups
    with the largest group scores can be used; of equal groups, those of the first.

    With ``given``, a row uses the experts whose numbers are there. One that is there twice counts twice.

    Source: Fedus et al. 2021, "Switch Transformers" (softmax); DeepSeek-AI 2024, "DeepSeek-V3 Technical
    Report", section 2.1.2 (sigmoid, correction); DeepSeek-AI 2024, "DeepSeek-V2", section 2.2.2 (groups);
    DeepSeek-AI 2026, "DeepSeek-V4 Technical Report", section 2.1 (sqrt_softplus, given experts, after Roller
    et al. 2021, "Hash Layers For Large Sparse Models").
    """

    kind: ClassVar[str] = "router"
    read_fields: ClassVar[tuple[str, ...]] = ("x", "given")
    tensor_fields: ClassVar[tuple[str, ...]] = ("weight", "bias", "correction", "gains")
    x: str
    out: str
    weight: TensorRef
    """``[experts, width]``, read as plain numbers."""
    top_k: int
    """Experts that each row uses."""
    score: Score = "softmax"
    normalized: bool = True
    """Whether the weights of a row add up to ``factor``."""
    factor: float = 1.0
    """Multiplies the weights."""
    scale: float = 1.0
    """Multiplies the products, before the bias."""
    groups: int = 1
    """Number of groups of experts."""
    top_groups: int = 1
    """Groups whose experts a row can use."""
    group_score: GroupScore = "sum_of_two"
    bias: TensorRef | None = None
    """``[experts]``, added to the products."""
    correction: TensorRef | None = None
    """``[experts]``, added to scores while experts and groups are chosen."""
    gains: TensorRef | None = None
    """``[experts]``, multiplies the weights."""
    given: str | None = None
    """``[rows, top_k]``: numbers of experts. A device that reads it, or the score ``sqrt_softplus``, states
    `llmd.api.features.GIVEN_EXPERTS`. None: the largest scores decide."""


class Experts(BaseOp, frozen=True, tag="experts"):
    """``out = sum of routes[e] * expert_e(x)`` over the experts e whose route is not 0.

    An expert is a feed-forward network: ``down(activation(gate(x)) * (up(x) + offset))``, or without a
    ``gate`` ``down(activation(up(x)))``. Its products round rows like those of `Linear`, and the rows between
    them are float32. The weights are stacks ``[experts, out, in]``, the biases stacks ``[experts, out]``.

    With a ``limit``, larger results of ``gate`` become the limit, and results of ``up`` with a larger
    magnitude become the limit with their sign, before the offset is added.

    Source: OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card" (limit and offset).
    """

    kind: ClassVar[str] = "experts"
    read_fields: ClassVar[tuple[str, ...]] = ("x", "routes")
    tensor_fields: ClassVar[tuple[str, ...]] = ("gate", "gate_bias", "up", "up_bias", "down", "down_bias")
    x: str
    routes: str
    """``[rows, experts]``, from `Router`."""
    out: str
    gate: TensorRef | None
    up: TensorRef
    down: TensorRef
    activation: Activation
    top_k: int
    """The most routes of a row that are not 0."""
    limit: float | None = None
    """None: no limit."""
    offset: float = 0.0
    gate_bias: TensorRef | None = None
    up_bias: TensorRef | None = None
    down_bias: TensorRef | None = None

    @property
    def num_experts(self) -> int:
        """Number of experts."""
        return self.down.view_shape[0]

    @property
    def row_elements(self) -> int:
        """Elements that a row takes: what enters and leaves each of its experts, and what the gate and up
        matrices of these make.
        """
        return self.top_k * 2 * sum(self.down.view_shape[1:])

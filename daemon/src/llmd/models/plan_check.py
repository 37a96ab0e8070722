"""Check that a checkpoint has the tensors of a plan: names, shapes and dtypes. No weight is read."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence

from llmd.api.errors import CheckpointError
from llmd.api.ops import Embed, Head
from llmd.api.plan import LeftOut, ModelPlan
from llmd.api.tensors import TensorRef
from llmd.models.checkpoint import STORED_FORMATS, Checkpoint, TensorInfo

OF_ONE_MODEL = "configuration and weights are of different models or versions; copy both again from one place"

HARMLESS = re.compile(
    r"rotary_emb\.(inv_freq|cos_cached|sin_cached)$|^rope\.freqs$|^rope_(freqs|factors_(long|short))\.weight$"
    r"|\.masked_bias$|\.([kv]|input|activation)_scale$|(^|\.)embeddings\.(position_ids|token_type_ids)$|^(bert\.|roberta\.)?pooler\.dense\.(weight|bias)$"
)
"""Tensors that may be unused: derived from the configuration, scales of the KV cache and of activations, and
BERT's pooler."""

INTEGER_DTYPES = ("I32", "I64")
"""Dtypes of tensors whose elements are integers (`TensorRef.integers_below`)."""
HEAD = "lm_head.weight"
NO_DRAFTS = "llmd does not draft with such a head yet"
LAYER_NUMBER = re.compile(r"\.\d+\.")


def check_plan(plan: ModelPlan, checkpoint: Checkpoint) -> tuple[str, ...]:
    """Check every tensor of the plan; return notices about tensors that the plan does not use.

    Raises:
        CheckpointError: a tensor is missing or has another shape or an unsupported dtype; or a layer holds a
            tensor that the plan ignores, so the output would be wrong.
    """
    refs = plan.tensor_refs()
    missing = [ref.name for ref in refs if ref.name not in checkpoint.tensors]
    if missing:
        raise _missing(missing, checkpoint)
    for ref in refs:
        find_tensor(ref, checkpoint)
    return _unused_notices(plan, {ref.name for ref in refs}, checkpoint)


def find_tensor(ref: TensorRef, checkpoint: Checkpoint) -> TensorInfo:
    """Return the tensor to which ``ref`` refers.

    Raises:
        CheckpointError: it is missing, has another shape or an unsupported dtype, or has fewer rows than
            needed.
    """
    tensor = checkpoint.tensors.get(ref.name)
    if tensor is None:
        raise _missing([ref.name], checkpoint)
    if not _fits(tensor.shape, ref):
        raise _contradiction(
            tensor,
            f"has shape {list(tensor.shape)}, the configuration asks for {list(ref.shape)}",
            OF_ONE_MODEL,
        )
    if ref.integers_below is not None and tensor.dtype in INTEGER_DTYPES:
        return tensor
    if tensor.format is None:
        raise _contradiction(
            tensor,
            f"has dtype {tensor.dtype}, a weight must have {', '.join(STORED_FORMATS)}",
            "use the model in one of these dtypes, or convert it",
        )
    rows = ref.whole_shape[ref.is_stack]
    if ref.rows is not None and not 0 <= ref.rows[0] < ref.rows[1] <= rows:
        raise _contradiction(
            tensor, f"has {rows} rows, the configuration asks for rows {ref.rows}", OF_ONE_MODEL
        )
    return tensor


def _fits(stored: tuple[int, ...], ref: TensorRef) -> bool:
    """Return whether a stored shape is that of the reference, has the matrices of its stack below each other,
    or the weights of each slice of a row, which are one vector.
    """
    shape = ref.shape
    if len(shape) == 1:
        return math.prod(stored) == shape[0]
    one_below_other = (shape[0] * shape[1], *shape[2:]) if ref.is_stack and ref.is_matrix else shape
    return _without_ones(stored) in {_without_ones(shape), _without_ones(one_below_other)}


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes that matter: in GGUF files, one row is a vector, and filters are a matrix."""
    return tuple(size for size in shape if size != 1)


def _contradiction(tensor: TensorInfo, message: str, hint: str) -> CheckpointError:
    return CheckpointError(message, file=str(tensor.file), tensor=tensor.name, hint=hint)


def _missing(names: Sequence[str], checkpoint: Checkpoint) -> CheckpointError:
    others = f", as are {len(names) - 1} more that the configuration asks for" if len(names) > 1 else ""
    last_part = names[0].rpartition(".")[2]
    candidates = [name for name in checkpoint.tensors if name.endswith(last_part)]
    close = difflib.get_close_matches(names[0], candidates[:1000], n=1)
    similar = f"; the nearest name is {close[0]}" if close else ""
    return CheckpointError(
        f"the tensor is missing{others}{similar}",
        file=str(checkpoint.file),
        tensor=names[0],
        hint=OF_ONE_MODEL,
    )


def left_out_tensors(plan: ModelPlan, checkpoint: Checkpoint) -> list[tuple[LeftOut, list[TensorInfo]]]:
    """Return what the plan leaves out on purpose and the checkpoint has, each with its tensors."""
    seen = {ref.name for ref in plan.tensor_refs()}
    found = []
    for left_out in plan.left_out:
        others = (tensor for name, tensor in _needed(checkpoint).items() if name not in seen)
        meant = [tensor for tensor in others if any(mark in tensor.name for mark in left_out.marks)]
        seen |= {tensor.name for tensor in meant}
        if meant:
            found.append((left_out, meant))
    return found


def _needed(checkpoint: Checkpoint) -> dict[str, TensorInfo]:
    """Return the tensors without those that may be unused."""
    return {name: tensor for name, tensor in checkpoint.tensors.items() if not HARMLESS.search(name)}


def _unused_notices(plan: ModelPlan, used: set[str], checkpoint: Checkpoint) -> tuple[str, ...]:
    notices: list[str] = []
    known = set(used)
    for left_out, meant in left_out_tensors(plan, checkpoint):
        known |= {tensor.name for tensor in meant}
        count = sum(len(tensor.stored) for tensor in meant)
        why = NO_DRAFTS if left_out.is_draft else left_out.why
        notices.append(f"{count} tensors for {left_out.what} are left out: {why}")
    unused = [name for name in _needed(checkpoint) if name not in known]
    _refuse_parts_of_layers(unused, used, checkpoint)
    if _is_tied(plan) and (head := next((name for name in unused if name.endswith(HEAD)), None)):
        unused.remove(head)
        notices.append(f"{head} is not used: the configuration ties the head to the embedding")
    if unused:
        notices.append(f"{len(unused)} tensors are not used: {_first_few(unused)}")
    return tuple(notices)


def _refuse_parts_of_layers(unused: Iterable[str], used: Iterable[str], checkpoint: Checkpoint) -> None:
    stacks = _stack_prefixes(used)
    for name in unused:
        if name.startswith(stacks) and LAYER_NUMBER.search(name):
            raise _contradiction(
                checkpoint.tensors[name],
                "belongs to a layer, but the configuration describes a model without it: answers would be wrong",
                OF_ONE_MODEL,
            )


def _stack_prefixes(used: Iterable[str]) -> tuple[str, ...]:
    """Return the text before the layer number in tensor names, for example ``model.layers.``."""
    return tuple({name[: found.start() + 1] for name in used if (found := LAYER_NUMBER.search(name))})


def _is_tied(plan: ModelPlan) -> bool:
    ops = [op for part in plan.parts for op in part.ops]
    tables = {op.table.name for op in ops if isinstance(op, Embed)}
    return any(op.weight.name in tables for op in ops if isinstance(op, Head))


def _first_few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")

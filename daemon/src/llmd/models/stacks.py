"""Join the tensors of experts that a checkpoint stores one by one: each set becomes one stack.

See `llmd.api.tensors.TensorRef`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from llmd.api.errors import CheckpointError
from llmd.api.tensors import MEMBER

if TYPE_CHECKING:
    from llmd.models.checkpoint import TensorInfo

MEMBER_NUMBER = re.compile(r"(?<=\bexperts\.)\d+(?=\.)")
"""The number of an expert in the name of a tensor."""

INCOMPLETE = "the model is incomplete; copy its weights again from where it came from"


def stacked(tensors: Mapping[str, TensorInfo]) -> dict[str, TensorInfo]:
    """Return the tensors with those of experts as stacks, named with `MEMBER`; others as they are.

    Raises:
        CheckpointError: an expert is missing, or differs from others in shape or dtype.
    """
    found: dict[str, TensorInfo] = {}
    stacks: dict[str, dict[int, TensorInfo]] = {}
    for name, tensor in tensors.items():
        number = MEMBER_NUMBER.search(name)
        if number is None:
            found[name] = tensor
        else:
            stacks.setdefault(MEMBER_NUMBER.sub(MEMBER, name, count=1), {})[int(number[0])] = tensor
    return found | {name: _joined(name, members) for name, members in stacks.items()}


def _joined(name: str, members: Mapping[int, TensorInfo]) -> TensorInfo:
    first = next(iter(members.values()))
    for number in range(len(members)):
        if number not in members:
            raise CheckpointError(
                f"expert {number} is missing, of {len(members) + 1} or more",
                file=str(first.file),
                tensor=name.replace(MEMBER, str(number)),
                hint=INCOMPLETE,
            )
        member = members[number]
        if (member.shape, member.dtype) != (first.shape, first.dtype):
            raise CheckpointError(
                f"has {member.dtype} {list(member.shape)}, and {first.name} {first.dtype} {list(first.shape)}",
                file=str(member.file),
                tensor=member.name,
                hint=INCOMPLETE,
            )
    ordered = [members[number] for number in range(len(members))]
    return msgspec.structs.replace(
        ordered[0],
        name=name,
        shape=(len(ordered), *first.shape),
        size_bytes=sum(member.size_bytes for member in ordered),
        members=tuple(ordered),
        pieces=(),
    )

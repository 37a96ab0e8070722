"""The committed SPIR-V is that of the committed sources, and needs nothing that devices may lack."""

from __future__ import annotations

import struct

import pytest

from llmd_backend_vulkan.shaders import FOLDER, spirv
from tools.shaders import digest, manifest

NAMES = sorted(path.stem for path in FOLDER.glob("*.comp"))
OP_CAPABILITY, SHADER = 17, 1
GROUP_NON_UNIFORM = range(61, 69)
"""Numbers of the subgroup capabilities, ``GroupNonUniform`` to ``GroupNonUniformQuad``."""


def capabilities(words: tuple[int, ...]) -> set[int]:
    """Return the numbers of the capabilities that a module declares."""
    found, at = set(), 5
    while at < len(words):
        if words[at] & 0xFFFF == OP_CAPABILITY:
            found.add(words[at + 1])
        at += words[at] >> 16
    return found


def test_shaders_were_compiled_from_these_sources() -> None:
    compiled = manifest(FOLDER)
    stale = [name for name in NAMES if compiled.get(name) != digest(FOLDER / f"{name}.comp")]
    assert stale == [], "run `python -m tools.shaders`"
    assert sorted(compiled) == NAMES == sorted(path.stem for path in FOLDER.glob("*.spv"))


@pytest.mark.parametrize("name", NAMES)
def test_a_shader_needs_vulkan_1_1_without_features(name: str) -> None:
    code = spirv(name)
    words = struct.unpack(f"<{len(code) // 4}I", code)
    assert words[0] == 0x07230203
    assert words[1] <= 0x00010300, "SPIR-V 1.3 is that of Vulkan 1.1"
    assert capabilities(words) <= {SHADER, *GROUP_NON_UNIFORM}


def test_a_capability_is_found() -> None:
    half_floats = (
        0x07230203,
        0x00010300,
        0,
        1,
        0,
        2 << 16 | OP_CAPABILITY,
        SHADER,
        2 << 16 | OP_CAPABILITY,
        9,
    )
    assert capabilities(half_floats) == {SHADER, 9}

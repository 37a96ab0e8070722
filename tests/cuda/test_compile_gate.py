"""Every kernel compiles for every architecture, without warnings, spills and local memory.

Local memory lies in the memory of the card, whose bandwidth bounds most kernels.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

import llmd_backend_cuda
from llmd.api.activations import ACTIVATIONS
from llmd_backend_cuda.compiler import ONLY_FOR, compile_source, figures
from llmd_backend_cuda.matrices import pack_spec
from llmd_backend_cuda.matrix_forms import CLAIMED_FORMATS, MatrixForm
from llmd_backend_cuda.ops.gemm_tiles import WarpTile, block_sizes, warpgroup_tiles
from llmd_backend_cuda.ops.linear import gemv_spec
from llmd_backend_cuda.runtime import KernelSpec

FOLDER = Path(llmd_backend_cuda.__file__).parent / "kernels"
SOURCES = sorted(path.stem for path in FOLDER.glob("*.cu"))
WIDTH = 4096
ARCHITECTURES = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_120")
PRODUCTS = ("gemm", "gemv")
"""Sources with so many variants that each form of a matrix is compiled by a separate test."""
FORMS = {MatrixForm.of(name, WIDTH): name for name in reversed(CLAIMED_FORMATS)}
"""Each form of a matrix, and the first format that has it."""
NORM_SHAPES = ((1, 1, 4), (16, 2, 4), (16, 10, 4), (16, 5, 1))
"""Warps, loads and elements of a load: for heads, for rows, for the widest rows, for odd widths."""

SLOWER = "Potential Performance Loss"
"""What the assembler says if it lets a warpgroup wait for each of its products."""

SPILLING = {("attention_whole", "sm_75")}
"""Kernels for prompts that may spill: heads of more than 128 elements, up to 160 bytes."""

TABLE: Mapping[str, Sequence[Mapping[str, int]]] = {
    "attention": [
        {"HEAD_DIM": size, "TILES": tiles, "KV_DTYPE": dtype, "SOFTCAP": softcap}
        for size, tiles in ((128, 4), (64, 4), (256, 2), (512, 1))
        for dtype in (0, 2, 3)
        for softcap in (0, 1)
    ]
    + [
        {"LATENT": 1, "HEAD_DIM": 576, "VALUE_DIM": 512, "TILES": 1, "RATIO": 16, "CHOSEN": chosen}
        for chosen in (0, 1)
    ]
    + [
        {
            "LATENT": 1,
            "HEAD_DIM": 512,
            "VALUE_DIM": 512,
            "TILES": 1,
            "RATIO": 64,
            "SUMS": 1,
            "STRIDE": stride,
            "CHOSEN": chosen,
        }
        for stride, chosen in ((1, 0), (4, 1), (128, 0))
    ]
    + [
        {"LATENT": 1, "HEAD_DIM": 128, "VALUE_DIM": 128, "TILES": 4, "RATIO": 16, "SUMS": 1, "STRIDE": 4},
        {"HEAD_DIM": 128, "TILES": 4, "SUMS": 1},
    ],
    "compress": [{"FORMAT": index} for index in range(3)],
    "elementwise": [{"ACTIVATION": index} for index in range(len(ACTIVATIONS))],
    "embed": [
        {"FORMAT": index, "VECTOR": vector, "SCALED": scaled}
        for index in range(3)
        for vector in (4, 1)
        for scaled in (0, 1)
    ],
    "gated_delta": [
        {"KEY_DIM": size, "BY_ELEMENT": by_element}
        for size, by_element in ((128, 0), (128, 1), (256, 1), (7, 0))
    ],
    "generalized_delta": [{"KEY_DIM": size} for size in (64, 128, 256, 7)],
    "indexer": [
        {"LATENT": 1, "HEAD_DIM": size, "VALUE_DIM": size, "KV_DTYPE": dtype, "HEADS": heads}
        for size, heads in ((128, 64), (64, 32), (256, 16))
        for dtype in (0, 4)
    ]
    + [
        {"LATENT": 1, "HEAD_DIM": 128, "VALUE_DIM": 128, "KV_DTYPE": dtype, "HEADS": 64, "STRIDE": 4}
        for dtype in (0, 4)
    ],
    "merge_attention": [{"VECTOR": vector} for vector in (4, 1)],
    "state_space": [{"KEY_DIM": size} for size in (128, 256, 7)],
    "router": [{"FORMAT": index, "VECTOR": vector} for index in range(3) for vector in (4, 1)],
    "encoder_attention": [{"HEAD_DIM": size} for size in (64, 32, 20)],
    "norm": [
        {"LAYER": layer, "ADD": add, "WARPS": warps, "LOADS": loads, "VECTOR": vector}
        for warps, loads, vector in NORM_SHAPES
        for add in (0, 1)
        for layer in (0, 1)
    ],
    "store_kv": [{"HEAD_DIM": size, "KV_DTYPE": dtype} for size in (128, 64, 256, 512) for dtype in range(4)]
    + [{"LATENT": 1, "HEAD_DIM": 576, "VALUE_DIM": 512, "KV_DTYPE": dtype} for dtype in range(2)]
    + [{"LATENT": 1, "HEAD_DIM": 128, "VALUE_DIM": 128, "KV_DTYPE": 4}]
    + [{"LATENT": 1, "HEAD_DIM": 512, "VALUE_DIM": 512, "STRIDE": stride} for stride in (4, 128)],
    "streams": [
        {"FORMAT": index, "VECTOR": vector, "STREAMS": streams}
        for index in range(3)
        for vector in (4, 1)
        for streams in (4, 1, 8)
    ],
}
"""Definitions of sources whose modules have no function for that; others have default definitions."""


def rows_of(form: MatrixForm) -> tuple[bool, ...]:
    """Return whether rows that a matrix multiplies are int8: never and always, if it has integers."""
    return (False, True) if form.is_integer else (False,)


def with_experts(spec: KernelSpec) -> KernelSpec:
    """Return the variant of a product for rows that are grouped by expert."""
    return KernelSpec.of(spec.source, spec.name, dict(spec.defines) | {"EXPERTS": 1})


def with_cached(spec: KernelSpec) -> KernelSpec:
    """Return the variant of a product for experts in blocks."""
    return KernelSpec.of(spec.source, spec.name, dict(spec.defines) | {"EXPERTS": 1, "CACHED": 1})


def with_heads(spec: KernelSpec) -> KernelSpec:
    """Return the variant of a product with a matrix for each slice of a row."""
    return KernelSpec.of(spec.source, spec.name, dict(spec.defines) | {"HEADS": 1})


def common_specs(source: str) -> Iterator[KernelSpec]:
    """Yield a few variants of a source."""
    forms = [MatrixForm.of(name, WIDTH) for name in ("q8", "f16")]
    if source == "gemv":
        yield from (gemv_spec(form, is_pair=False) for form in forms)
        yield with_experts(gemv_spec(forms[0], is_pair=True))
        yield with_cached(gemv_spec(forms[0], is_pair=True))
        yield gemv_spec(forms[0], is_pair=False, int8=True)
    elif source == "gemm":
        yield from (WarpTile(128, split=False, int8=int8).spec(forms[0]) for int8 in (False, True))
        yield with_experts(WarpTile(16, split=False).spec(forms[0]))
        yield with_cached(WarpTile(16, split=False).spec(forms[0]))
    elif source == "gemm_warpgroup":
        yield warpgroup_tiles(forms[0])[0].spec(forms[0])
    elif source == "pack":
        yield pack_spec(forms[0], "q8")
    else:
        yield from [KernelSpec.of(source, "", defines) for defines in TABLE.get(source, [{}])][:2]


def all_specs(source: str, forms: Sequence[MatrixForm]) -> Iterator[KernelSpec]:
    """Yield all variants of a source, those of products for matrices of these forms."""
    if source == "gemv":
        for form, is_pair in product(forms, (False, True)):
            specs = [gemv_spec(form, is_pair=is_pair, int8=int8) for int8 in rows_of(form)]
            yield from (*specs, *map(with_experts, specs), *map(with_cached, specs))
            yield from () if is_pair else map(with_heads, specs)
    elif source == "gemm":
        for form, split in product(forms, (False, True)):
            for int8 in rows_of(form):
                sizes = block_sizes(form, int8=int8)
                specs = [WarpTile(rows, split=split, int8=int8).spec(form) for rows in sizes]
                yield from specs
                for variant in () if split else (with_experts, with_cached, with_heads):
                    yield from map(variant, specs)
    elif source == "gemm_warpgroup":
        yield from (tile.spec(form) for form in forms for tile in warpgroup_tiles(form))
    elif source == "pack":
        yield from (pack_spec(MatrixForm.of(name, WIDTH), name) for name in CLAIMED_FORMATS)
    else:
        yield from (KernelSpec.of(source, "", defines) for defines in TABLE.get(source, [{}]))


def faults(variant: str, log: str) -> list[str]:
    """Return what the log of a compilation shows to be wrong with its kernels."""
    found = figures(log)
    wrong = [f"{variant}: {line}" for line in log.splitlines() if "warning #" in line or SLOWER in line]
    wrong += [] if found else [f"{variant}: the log has no figures: {log}"]
    wrong += [
        f"{variant}: {name} has {kernel.spill_bytes} bytes of spills and a stack of {kernel.stack_bytes}"
        for name, kernel in found.items()
        if (kernel.spill_bytes or kernel.stack_bytes) and (name, variant[-5:]) not in SPILLING
    ]
    return wrong


def compiled_faults(spec: KernelSpec, architecture: str) -> list[str]:
    """Return what is wrong with the kernels of a source with some definitions."""
    log = compile_source(spec, architecture).log
    return faults(f"{spec.source} {dict(spec.defines)} {architecture}", log)


def check(specs: Iterator[KernelSpec], architectures: Sequence[str]) -> None:
    """Compile each spec for each architecture and check the result."""
    pairs = [(spec, architecture) for spec in dict.fromkeys(specs) for architecture in architectures]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        assert [
            fault for wrong in pool.map(lambda pair: compiled_faults(*pair), pairs) for fault in wrong
        ] == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize("source", SOURCES)
def test_a_few_variants_compile_for_common_cards(source: str) -> None:
    check(common_specs(source), ("sm_90",) if source in ONLY_FOR else ("sm_80", "sm_90"))


def all_cases() -> Mapping[str, tuple[str, Sequence[MatrixForm], str]]:
    """Return sources, the forms of their matrices, and architectures, each with a name."""
    cases: dict[str, tuple[str, Sequence[MatrixForm], str]] = {}
    for source in SOURCES:
        for architecture in ("sm_90",) if source in ONLY_FOR else ARCHITECTURES:
            if source in PRODUCTS:
                for form, name in FORMS.items():
                    cases[f"{source}-{name}-{architecture}"] = source, (form,), architecture
            else:
                cases[f"{source}-{architecture}"] = source, tuple(FORMS), architecture
    return cases


CASES = all_cases()


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("source", "forms", "architecture"), CASES.values(), ids=CASES)
def test_all_variants_compile_for_all_cards(
    source: str, forms: Sequence[MatrixForm], architecture: str
) -> None:
    check(all_specs(source, forms), (architecture,))


def test_spills_stacks_and_warnings_are_faults() -> None:
    log = """\
some.cu(7): warning #177-D: variable "x" was declared but never referenced
ptxas info    : Function properties for good
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for array
    24 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for large
    16 bytes stack frame, 16 bytes spill stores, 32 bytes spill loads
ptxas info    : (C7510) Potential Performance Loss: products are serialized
"""
    assert faults("some sm_90", log) == [
        'some sm_90: some.cu(7): warning #177-D: variable "x" was declared but never referenced',
        "some sm_90: ptxas info    : (C7510) Potential Performance Loss: products are serialized",
        "some sm_90: array has 0 bytes of spills and a stack of 24",
        "some sm_90: large has 48 bytes of spills and a stack of 16",
    ]
    assert faults("some sm_90", "") == ["some sm_90: the log has no figures: "]

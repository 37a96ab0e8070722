"""Bugs that are planted in the shaders of ops are found by the conformance suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.testing.conformance import cases_for, check_case
from llmd_backend_vulkan.device import VulkanDevice
from tests.vulkan.test_planted_bugs import NEEDS_COMPILER, fresh, plant

__all__ = ["fresh"]

pytestmark = pytest.mark.timeout(120)

DELTA = "gated_delta/grouped"
WKV = "generalized_delta/mixed"
RUN = "load_row(row, head, key_head);\n        barrier();"


@NEEDS_COMPILER
@pytest.mark.parametrize(
    ("name", "file", "old", "new"),
    [
        pytest.param(
            "indexer/odd-f32",
            "index_scores.comp",
            "query[at] = exists",
            "query[at + 0u] = head > 0u && exists",
            id="first index head",
        ),
        pytest.param(
            "experts/ungated", "linear.glsl", "* member_rows;\n    bias", "* 1u;\n    bias", id="member"
        ),
        *(
            pytest.param(*bug, id=label, marks=pytest.mark.exhaustive)
            for label, bug in {
                "subnormal numbers": ("linear/fp8", "matrix.glsl", "magnitude < 8u", "false"),
                "sign of a number": ("linear/fp8", "matrix.glsl", "(code & 128u) << 24", "0u"),
                "exponent of a number": ("linear/fp8", "matrix.glsl", "(120u << 23)", "(112u << 23)"),
                "scale of the first group": ("linear/nvfp4", "linear.glsl", "column / GROUP;", "0u;"),
                "bias of a member": (
                    "experts/limit",
                    "linear.glsl",
                    "bias_row = member * member_rows",
                    "bias_row = 0u",
                ),
                "rows of an expert": (
                    "experts/ungated",
                    "experts_assign.comp",
                    "place += count;",
                    "place += 1u;",
                ),
                "limit": (
                    "experts/limit",
                    "experts_gate.comp",
                    "max(min(up_value, limit), -limit)",
                    "up_value",
                ),
                "order of experts": (
                    "experts/ungated",
                    "experts_sum.comp",
                    "first + uint(findLSB(bits))",
                    "first",
                ),
                "groups of experts": (
                    "router/groups",
                    "router.comp",
                    "before < top_groups",
                    "before <= top_groups",
                ),
                "sum of scores": (
                    "router/softmax",
                    "router.comp",
                    "scale / (sum_of_threads(sum)",
                    "scale / (2.0 * sum_of_threads(sum)",
                ),
                "correction": ("router/sigmoid", "router.comp", "found + uintBits", "found - uintBits"),
                "sink": (
                    "attention/sinks-f32",
                    "attention_spans.glsl",
                    "scaled, exp(sink - largest)",
                    "scaled, 0.0",
                ),
                "weights of another slice": (
                    "norm/rms-own",
                    "norm.comp",
                    "[weight_at + own + i]",
                    "[weight_at + i]",
                ),
                "another column": ("embed/f16-columns", "embed.comp", "first_column + column", "column"),
                "no factor": ("multiply", "elementwise.comp", "factors[factor_at]", "0x3f800000u"),
                "joined values": ("join/heads", "join.comp", "element < a_dim", "element <= a_dim"),
                "row of a tap": (DELTA, "state_convolve.comp", "number_of_row + tap)", "number_of_row)"),
                "length of keys": (DELTA, "state_convolve.comp", "sum_of_threads(squares)", "squares"),
                "kept rows": (DELTA, "state_keep.comp", "(begin + i + rows - kept)", "(begin + i)"),
                "share": (DELTA, "state_run.comp", "change * share", "change"),
                "state without a barrier": (DELTA, "state_run.comp", RUN, RUN.replace("barrier();", "")),
                "slot of a sequence": (DELTA, "state_slots.glsl", "2u * sequence, from", "sequence, from"),
                "bound of a time": (
                    "state_space/bounds",
                    "state_weigh.comp",
                    "min(max(time, least), most)",
                    "time",
                ),
                "skip": ("state_space/bounds", "state_run.comp", "[skip_at + head]", "[skip_at]"),
                "bias of a filter": (
                    "state_space/bounds",
                    "state_convolve.comp",
                    "[bias_at + column]",
                    "[bias_at]",
                ),
                "rows of another item": ("adapt/f32", "adapter.glsl", "rows_at + work[at + 1u]", "rows_at"),
                "changes of another adapter": (
                    "adapt/f32",
                    "adapter.glsl",
                    "(adapter * values",
                    "(0u * values",
                ),
                "place of a rank": ("adapt/f32", "adapter.glsl", " + work[change + 1u]", ""),
                "scale of an adapter": ("adapt/f32", "adapt_outputs.comp", "sums[n], scale", "sums[n], 1.0"),
                "buffer of a change": (
                    "adapt/f32",
                    "adapt_middle.comp",
                    "work[change + 5u]",
                    "work[change + 9u]",
                ),
                "row before": (
                    "token_shift/one",
                    "token_shift.comp",
                    "(row - 1u) * x_stride",
                    "row * x_stride",
                ),
                "row of another step": (
                    "token_shift/one",
                    "token_shift.comp",
                    "slots.from + column",
                    "column",
                ),
                "length of what is removed": (
                    WKV,
                    "generalized_delta_rows.comp",
                    "_threads(squares)",
                    "_threads(1.0)",
                ),
                "place of keys": (WKV, "generalized_delta_run.comp", "from + width + i", "from + i"),
                "what is removed": (WKV, "generalized_delta_run.comp", "-taken", "taken"),
                "slice of a head": ("head_linear/f16-wide", "heads_split.comp", "head * slice + i", "i"),
                "rows of a head": (
                    "head_linear/f16-wide",
                    "heads_join.comp",
                    "/ slice * most_rows",
                    "/ slice",
                ),
                "values behind keys": (
                    "attention/latent-f16",
                    "attention_keys.glsl",
                    "position, value_kind",
                    "position, 1u",
                ),
                "values of a span": (
                    "attention/long-latent-f16",
                    "attention_merge.comp",
                    "value_dim + 1u",
                    "value_dim",
                ),
                "no maximum": (
                    "indexer/odd-f32",
                    "index_scores.comp",
                    "max(products[h], 0.0)",
                    "products[h]",
                ),
                "weight of another head": (
                    "indexer/odd-f32",
                    "index_scores.comp",
                    "weight_stride + first + h",
                    "weight_stride + first",
                ),
                "digits of all scores": (
                    "indexer/odd-f32",
                    "choose_positions.comp",
                    "(order & known) != lowest",
                    "false",
                ),
                "earlier of equal scores": (
                    "indexer/equal-scores",
                    "choose_positions.comp",
                    "lowest, equal - wanted",
                    "lowest, 0u",
                ),
                "positions of the first row": (
                    "indexer/odd-f32",
                    "attention.comp",
                    "chosen + row * chosen_stride",
                    "chosen",
                ),
                "limit of a gate": ("glu/limit", "elementwise.comp", "value = min(value, limit);", ""),
                "expert that is given twice": (
                    "router/given",
                    "router.comp",
                    "scores[expert] * times",
                    "scores[expert]",
                ),
                "no root": ("router/sqrt-softplus", "router.comp", "sqrt(softplus(z))", "softplus(z)"),
                "vector of another token": (
                    "merge_attention/all-f32",
                    "store_kv.comp",
                    "end % token_stride",
                    "(end + 1u) % token_stride",
                ),
                "block of a vector": (
                    "merge_attention/all-f32",
                    "attention_keys.glsl",
                    "(at >> vector_bits)",
                    "(at >> 4u)",
                ),
                "sum without the sink": (
                    "merge_attention/all-f32",
                    "attention_spans.glsl",
                    "exp(all_spans.best - largest), exp(sink - largest))",
                    "exp(all_spans.best - largest), 0.0)",
                ),
                "sum of another row": (
                    "merge_attention/all-f32",
                    "merge_attention.comp",
                    "row * sums_stride + ",
                    "",
                ),
                "row that sees nothing": (
                    "merge_attention/few-f32",
                    "attention_spans.glsl",
                    "return MINUS_INFINITY;",
                    "return floatBitsToUint(0.0);",
                ),
                "gates behind keys": ("compress/overlap-f32", "keep_parts.comp", "gate + index", "x + index"),
                "tokens before a vector": (
                    "compress/overlap-f32",
                    "compress.comp",
                    "max(end, span) - span",
                    "end - stride",
                ),
                "bias of another token": (
                    "compress/apart-f32",
                    "compress.comp",
                    "token % stride * width + element",
                    "element",
                ),
                "columns before rows": (
                    "mix_streams/4-20",
                    "stream_weights.comp",
                    "if (round_at > 0u)",
                    "if (false)",
                ),
                "scale of another part": (
                    "mix_streams/4-20",
                    "stream_weights.comp",
                    "scales[scale_at + part]",
                    "scales[scale_at]",
                ),
                "transposed mixture": (
                    "mix_streams/4-20",
                    "mix_streams.comp",
                    "mix_at + i * streams + k",
                    "mix_at + k * streams + i",
                ),
                "first stream alone": (
                    "collapse_streams/5",
                    "collapse_streams.comp",
                    "weight_stride + i",
                    "weight_stride",
                ),
                "sink of a head": (
                    "attention/long-sinks-f32",
                    "attention_merge.comp",
                    "[sink_at + head]",
                    "[sink_at]",
                ),
            }.items()
        ),
    ],
)
def test_the_suite_shows_a_bug_in_a_shader(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fresh: VulkanDevice,
    name: str,
    file: str,
    old: str,
    new: str,
) -> None:
    plant(monkeypatch, tmp_path / "shaders", file, old, new)
    case = next(case for case in cases_for(fresh.info) if case.name == name)
    assert any(result.problem for result in check_case(fresh, case))

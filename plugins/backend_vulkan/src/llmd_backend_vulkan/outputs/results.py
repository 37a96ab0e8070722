"""Tokens and records that the device wrote, as a `StepResult`."""

from __future__ import annotations

import numpy as np

from llmd.api import Selection, StepResult
from llmd.api.draws import HOST
from llmd_backend_vulkan.commands import Words
from llmd_backend_vulkan.outputs.inputs import described_rows
from llmd_backend_vulkan.outputs.layout import RECORD_START, OutputsLayout


def read_results(words: Words, layout: OutputsLayout, selection: Selection) -> StepResult:
    """Return copies of the results of a step; those that no row asked for are undefined."""
    count, kept, draws = selection.num_rows, layout.kept, selection.draws
    # The host may read this memory slowly: once, and no more than is defined.
    tokens = words[:count].copy().view(np.int32)
    num_words = count * layout.record_words if described_rows(selection).any() else 0
    records = np.zeros((count, layout.record_words), np.uint32)
    records.reshape(-1)[:num_words] = words[layout.max_outputs : layout.max_outputs + num_words]
    sums = records[:, :6].T.copy()
    lists = (
        records[:, RECORD_START : RECORD_START + 3 * kept].reshape(count, 3, kept).transpose(1, 0, 2).copy()
    )
    top = min(selection.raw_top, layout.vocab)
    tops = records[:, RECORD_START + 3 * kept :].reshape(count, 2, layout.raw_kept)
    tops = tops[:, :, :top].transpose(1, 0, 2).copy()
    floats = sums.view(np.float32)
    return StepResult(
        ids=lists[0].view(np.int32),
        edited=lists[1].view(np.float32),
        raw=lists[2].view(np.float32),
        raw_logsumexp=floats[0],
        edited_logsumexp=floats[1],
        edited_entropy=floats[2],
        edited_deviation=floats[3],
        num_allowed=sums[4].view(np.int32),
        target_raw=np.where(selection.targets < 0, np.float32(np.nan), floats[5]),
        top_ids=tops[0].view(np.int32),
        top_raw=tops[1].view(np.float32),
        tokens=None if draws is None else np.where(draws.kinds == HOST, np.int32(-1), tokens),
    )

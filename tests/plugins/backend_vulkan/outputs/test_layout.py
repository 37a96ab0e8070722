"""Places of output rows do not overlap."""

from __future__ import annotations

import itertools

from llmd.api import StageLimits
from llmd_backend_vulkan.outputs.layout import OutputsLayout

LIMITS = StageLimits(max_rows=8, max_sequences=8, max_outputs=3)


def test_places_follow_each_other_with_room_for_all_rows() -> None:
    layout = OutputsLayout(5000, LIMITS)
    assert layout.num_parts == 5
    sizes = [after - before for before, after in itertools.pairwise(layout.places.values())]
    needed = [64, 15000, 15000, 3 * 5 * 64 * 2, 3 * 5 * 20 * 2, 3 * 5 * 12]
    assert all(size >= least for size, least in zip(sizes, needed, strict=True))
    assert all(place % 64 == 0 for place in layout.places.values())


def test_a_small_vocabulary_has_fewer_candidates() -> None:
    layout = OutputsLayout(10, LIMITS)
    assert (layout.kept, layout.raw_kept, layout.mask_words, layout.stride) == (10, 10, 1, 12)
    assert layout.record_words == 8 + 30 + 20
    assert layout.results_words == 3 * (1 + 58)
    assert layout.host_words == 4 + 60 + 3 + 177

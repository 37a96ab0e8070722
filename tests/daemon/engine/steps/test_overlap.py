from __future__ import annotations

import pytest

from llmd.engine.steps.overlap import Overlap, choose_overlap


@pytest.mark.parametrize(
    ("follows_device", "needs_appended", "feeds_itself", "expected"),
    [
        (True, False, True, Overlap.BEHIND),
        (True, True, True, Overlap.BEHIND),  # masks follow once the tokens are appended
        (True, False, False, Overlap.AFTER_DRAW),
        (True, True, False, Overlap.AFTER_APPEND),
        (False, False, True, Overlap.AFTER_DRAW),
        (False, True, True, Overlap.AFTER_APPEND),
        (False, False, False, Overlap.AFTER_DRAW),
        (False, True, False, Overlap.AFTER_APPEND),
    ],
)
def test_a_step_is_launched_as_early_as_what_it_lacks_allows(
    *, follows_device: bool, needs_appended: bool, feeds_itself: bool, expected: Overlap
) -> None:
    flags = {"follows_device": follows_device, "needs_appended": needs_appended}
    flags["device_feeds_itself"] = feeds_itself
    assert choose_overlap(is_empty=False, lacks_tokens=True, **flags) is expected
    assert choose_overlap(is_empty=False, lacks_tokens=False, **flags) is Overlap.BEHIND
    assert choose_overlap(is_empty=True, lacks_tokens=False, **flags) is Overlap.NONE

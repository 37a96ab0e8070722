from __future__ import annotations

from llmd.grammar.texts.characters import CHARACTERS, LAST, classes, contains, inverted, joined


def test_ranges_that_touch_or_overlap_are_one() -> None:
    assert joined([(5, 9), (1, 2), (3, 3), (8, 12)]) == ((1, 3), (5, 12))
    assert joined([]) == ()


def test_the_other_characters_are_all_but_surrogates() -> None:
    assert inverted(()) == CHARACTERS
    assert inverted(((0, 0x10), (0x20, 0xD7FF))) == ((0x11, 0x1F), (0xE000, LAST))
    assert inverted(CHARACTERS) == ()
    assert inverted(((LAST, LAST),)) == ((0, 0xD7FF), (0xE000, LAST - 1))


def test_classes_hold_what_no_set_tells_apart() -> None:
    digits, letters = ((48, 57),), ((97, 99), (120, 122))
    found = classes([digits, ((50, 50), (97, 97)), letters])
    assert sorted(found) == sorted([
        ((48, 49), (51, 57)), ((50, 50),), ((97, 97),), ((98, 99), (120, 122)),
        joined([(0, 47), (58, 96), (100, 119), (123, 0xD7FF), (0xE000, LAST)]),
    ])  # fmt: skip


def test_a_code_point_is_in_one_of_the_ranges() -> None:
    assert contains(((1, 2), (5, 5)), 5)
    assert not contains(((1, 2), (5, 5)), 3)

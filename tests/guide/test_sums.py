"""Sums and their worked answers."""

from __future__ import annotations

from random import Random

from guide.sums import LARGEST, held_out, pair, question, shown_pairs, solution


def test_training_never_draws_a_held_out_pair() -> None:
    random = Random(1)
    drawn = {pair(random) for _ in range(3000)}
    assert not any(held_out(*shown) for operands in drawn for shown in shown_pairs(*operands))


def test_about_a_tenth_of_the_pairs_is_held_out_in_both_orders() -> None:
    pairs = [(a, b) for a in range(LARGEST["+"] + 1) for b in range(LARGEST["+"] + 1)]
    out = [(a, b) for a, b in pairs if held_out(a, "+", b)]
    assert 0.05 < len(out) / len(pairs) < 0.15
    assert all(held_out(b, "+", a) for a, b in out)


def test_a_product_counts_up_to_its_result() -> None:
    assert solution(3, "*", 4) == "3 * 4: 4 8 12. 3 * 4 = 12."
    assert solution(1, "*", 9) == "1 * 9 = 9."
    assert solution(0, "*", 9) == "0 * 9 = 0."


def test_tens_come_before_ones() -> None:
    assert solution(27, "+", 38) == "27 + 30 = 57, 57 + 8 = 65. 27 + 38 = 65."
    assert solution(45, "-", 17) == "45 - 10 = 35, 35 - 7 = 28. 45 - 17 = 28."
    assert solution(20, "+", 40) == "20 + 40 = 60."


def test_a_negative_difference_is_turned_around() -> None:
    assert solution(3, "-", 5) == "5 - 3 = 2, so 3 - 5 = -2."


def test_every_answer_ends_with_the_result() -> None:
    pairs = [(a, b) for a in range(51) for b in range(51)]
    assert all(solution(a, "+", b).endswith(f" {a + b}.") for a, b in pairs)
    assert all(solution(a, "-", b).endswith(f" {a - b}.") for a, b in pairs)


def test_a_question_names_both_operands() -> None:
    texts = {question(13, "+", 27, Random(seed)) for seed in range(200)}
    forms = (("13", "thirteen"), ("27", "twenty-seven", "twenty seven"))
    assert all(any(form in text for form in operand) for text in texts for operand in forms)
    assert len(texts) > 50

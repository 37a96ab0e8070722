from __future__ import annotations

from llmd.chat.answers.thinking import effort_budget, thinking_variables


def test_what_nobody_says_is_left_to_the_template() -> None:
    assert thinking_variables() == {}
    assert thinking_variables(effort="low") == {"reasoning_effort": "low"}


def test_the_switch_has_the_names_of_all_families() -> None:
    assert thinking_variables(on=True) == {"enable_thinking": True, "thinking": True}


def test_no_effort_turns_thinking_off() -> None:
    off = {"enable_thinking": False, "thinking": False, "reasoning_effort": "none"}
    assert thinking_variables(effort="none") == off


def test_more_effort_is_a_larger_budget_and_the_most_has_none() -> None:
    efforts = ("none", "minimal", "low", "medium", "high")
    budgets = [effort_budget(effort) for effort in efforts]
    assert budgets[0] == 0
    assert budgets == sorted(budget for budget in budgets if budget is not None)
    assert {effort_budget(effort) for effort in ("xhigh", "max", None)} == {None}

"""Each schema of the JSON Schema Test Suite is refused by name,
or its grammar allows what is valid and nothing else.

`suite_exceptions.toml` lists all exceptions with their reasons. One that is listed and none any more fails
the test, as does one that is not listed.
"""

from __future__ import annotations

import pytest

from tests.structured.suite import DRAFTS, exceptions, outcome

MOST_REFUSED = 50
"""Of the 368 schemas of the newest draft; once it was 192."""


def check(draft: str, *, optional: bool) -> None:
    found, listed = outcome(draft, optional=optional), exceptions(draft, optional=optional)
    assert found.invalid_allowed == listed.invalid_allowed
    assert found.refused.keys() == listed.refused.keys()
    assert [name for name, part in listed.refused.items() if part not in found.refused[name]] == []
    assert found.valid_not_allowed == listed.valid_not_allowed


def test_schemas_of_the_newest_draft_are_kept_or_refused_by_name() -> None:
    check("2020-12", optional=False)


def test_the_number_of_refused_schemas_does_not_rise() -> None:
    assert len(exceptions("2020-12", optional=False).refused) <= MOST_REFUSED


def test_no_constraint_of_the_newest_draft_is_dropped() -> None:
    assert exceptions("2020-12").invalid_allowed == set()


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
@pytest.mark.parametrize("draft", DRAFTS)
def test_schemas_of_every_draft_are_kept_or_refused_by_name(draft: str) -> None:
    check(draft, optional=True)

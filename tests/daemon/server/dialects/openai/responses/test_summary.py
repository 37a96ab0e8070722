from __future__ import annotations

import pytest

from llmd.requests.fields import BadRequestError
from llmd.server.dialects.openai.responses.summary import HEAD, MARK, read_summary, written_summary


def test_a_summary_is_read_as_it_was_written() -> None:
    assert read_summary(written_summary("Größe: 3\n"), "input[0]") == HEAD + "Größe: 3\n"


@pytest.mark.parametrize("content", [None, 3, "", "gAAAAA", f"{MARK}not base64!", f"{MARK}/w=="])
def test_what_others_made_is_refused_with_its_place(content: object) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_summary(content, "input[2]")
    assert (caught.value.code, caught.value.param) == (
        "invalid_encrypted_content",
        "input[2].encrypted_content",
    )

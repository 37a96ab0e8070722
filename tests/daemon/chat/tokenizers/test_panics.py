from __future__ import annotations

import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.panics import panics_refused


class PanicException(BaseException):
    """Stands in for the class that the libraries do not export."""


def test_a_panic_becomes_an_error_with_its_reason() -> None:
    with (
        pytest.raises(TokenizerError, match=r"the tokenizer fails .*: index out of bounds") as caught,
        panics_refused("the tokenizer"),
    ):
        raise PanicException("index out of bounds")
    assert caught.value.hint


@pytest.mark.parametrize("other", [KeyboardInterrupt(), ValueError("x")])
def test_everything_else_passes_through(other: BaseException) -> None:
    with pytest.raises(type(other)), panics_refused("the tokenizer"):
        raise other

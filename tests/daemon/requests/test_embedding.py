"""An engine's output becomes the vectors that a request wants."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import LlmdError
from llmd.api.embedding import Embedding
from llmd.requests.embedding import EmbeddingRequest, check_nested, normalized, to_vectors
from llmd.requests.fields import BadRequestError

PLAIN = Embedding(("last",), normalizes=False)


@pytest.mark.parametrize(
    ("embedding", "dimensions"),
    [
        (PLAIN, 8),
        (Embedding(("last",), nested=True, nested_dimensions=(4, 8)), 5),
    ],
)
def test_vectors_that_mean_something_only_whole_are_not_cut(embedding: Embedding, dimensions: int) -> None:
    check_nested(embedding, None)
    with pytest.raises(BadRequestError, match=f"{dimensions} dimensions") as caught:
        check_nested(embedding, dimensions)
    assert caught.value.param == "dimensions"
    assert caught.value.hint


def test_nested_vectors_are_cut_and_made_length_one_again() -> None:
    nested = Embedding(("last",), normalizes=False, nested=True, nested_dimensions=(2,))
    check_nested(nested, 2)
    found = [np.array([3, 4, 12], "<f4").tobytes()]
    assert to_vectors(found, nested, EmbeddingRequest(("a",))).tolist() == [[3, 4, 12]]
    cut = to_vectors(found, nested, EmbeddingRequest(("a",), dimensions=2))
    np.testing.assert_allclose(cut, [[0.6, 0.8]], rtol=1e-6)
    with pytest.raises(BadRequestError, match="between 1 and 3, not 4"):
        to_vectors(found, nested, EmbeddingRequest(("a",), dimensions=4))


def test_a_request_may_say_whether_vectors_are_normalised() -> None:
    found = [np.array([3, 4], "<f4").tobytes()]
    request = EmbeddingRequest(("a",), normalizes=True)
    np.testing.assert_allclose(to_vectors(found, PLAIN, request), [[0.6, 0.8]], rtol=1e-6)
    raw = to_vectors(found, Embedding(("last",)), EmbeddingRequest(("a",), normalizes=False))
    assert raw.tolist() == [[3, 4]]


def test_zeros_stay_zeros_and_what_is_no_number_is_an_error() -> None:
    assert normalized(np.zeros((1, 3), np.float32)).tolist() == [[0, 0, 0]]
    for value in (np.nan, np.inf):
        with pytest.raises(LlmdError, match="not finite") as caught:
            to_vectors([np.array([1, value], "<f4").tobytes()], PLAIN, EmbeddingRequest(("a",)))
        assert caught.value.hint

from __future__ import annotations

import pytest
from msgspec import structs

from llmd.api.embedding import Embedding
from llmd.api.messages import Loaded
from llmd.requests.fields import BadRequestError
from llmd.requests.model_kind import check_generates, embedding_of

GENERATES = Loaded("llama", 10, 64, 64, 1, ("f32",), (), 64, 0.0)
SCORES = structs.replace(GENERATES, embedding=Embedding(("cls",), normalizes=False, score="sigmoid"))
EMBEDS = structs.replace(GENERATES, embedding=Embedding(("last",)))


def test_a_model_is_asked_for_what_it_was_made_for() -> None:
    check_generates("tiny", GENERATES)
    assert embedding_of("tiny", EMBEDS) == EMBEDS.embedding


def test_another_one_is_refused_by_name() -> None:
    with pytest.raises(BadRequestError, match="tiny embeds texts and cannot generate") as embeds:
        check_generates("tiny", EMBEDS)
    with pytest.raises(BadRequestError, match="tiny generates text and cannot embed") as generates:
        embedding_of("tiny", GENERATES)
    with pytest.raises(BadRequestError, match="tiny scores pairs of texts and cannot generate") as chats:
        check_generates("tiny", SCORES)
    with pytest.raises(BadRequestError, match="tiny scores pairs of texts and cannot embed") as scores:
        embedding_of("tiny", SCORES)
    for caught in (embeds.value, generates.value, chats.value, scores.value):
        assert (caught.code, caught.param) == ("unsupported_model", "model")
        assert caught.hint

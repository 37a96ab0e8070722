from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import ContextLengthError, LlmdError, MemoryBudgetError, NotFoundError, RequestError
from llmd.client_errors import EXIT_REFUSED, error_of, not_llmd


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "no", "code": "out_of_memory", "type": "unavailable_error"}, MemoryBudgetError),
        ({"message": "no", "code": "model_not_found", "type": "not_found_error"}, NotFoundError),
        ({"message": "no", "code": "request_not_found", "type": "not_found_error"}, NotFoundError),
        ({"message": "no", "code": None, "type": "invalid_request_error", "param": "top_k"}, RequestError),
        ({"message": "no", "code": "new", "type": "new_error"}, LlmdError),
        ("of Ollama", LlmdError),
    ],
)
def test_each_error_is_the_exception_that_it_was(error: Any, kind: type[LlmdError]) -> None:
    assert type(error_of({"error": error})) is kind


@pytest.mark.parametrize(("status", "kind"), [(400, RequestError), (404, NotFoundError), (500, LlmdError)])
def test_a_text_alone_is_the_exception_of_its_status(status: int, kind: type[LlmdError]) -> None:
    assert type(error_of({"error": "of Ollama"}, status)) is kind


def test_a_prompt_that_is_too_long_has_both_numbers() -> None:
    numbers = {"n_prompt_tokens": 700, "n_ctx": 512}
    error = error_of({"error": {"message": "no", "code": "x", "type": "y", "param": "messages", **numbers}})
    assert isinstance(error, ContextLengthError)
    assert (error.prompt_len, error.context_len) == (700, 512)
    assert str(error) == "no"


def test_a_refusal_has_its_exit_code() -> None:
    assert error_of({"error": {"message": "no", "type": "permission_error"}}).exit_code == EXIT_REFUSED


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "m", "code": "missing_api_key"}}, "an API key is required"),
        ({"error": {"message": "m", "code": "invalid_api_key"}}, "unknown"),
        ({"error": {"message": "m", "code": "key_lacks_right"}}, "may not manage"),
        ({"error": {"message": "m", "code": "local_only"}}, "may manage it without a key"),
        ({"error": "an API key is required"}, "an API key is required"),
        ({"error": "this API key is unknown"}, "unknown"),
    ],
)
def test_a_refused_key_is_to_be_had_from_the_servers_owner(body: dict[str, Any], message: str) -> None:
    error = error_of(body, 401)
    assert message in error.message
    assert error.hint.startswith(
        "set LLMD_API_KEY, or api_key in config.toml, to a key from the server's owner"
    )
    assert error.exit_code == EXIT_REFUSED


@pytest.mark.parametrize("body", [{}, {"error": 7}])
def test_other_servers_are_recognised(body: dict[str, Any]) -> None:
    assert str(error_of(body)) == str(not_llmd())

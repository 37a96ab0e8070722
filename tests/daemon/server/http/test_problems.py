from __future__ import annotations

import pytest

from llmd.api.errors import (
    ContextLengthError,
    DeviceError,
    EngineCrashedError,
    GrammarError,
    LlmdError,
    MemoryBudgetError,
    ModelError,
    NotFoundError,
    RequestError,
    TemplateError,
)
from llmd.api.problem import Problem
from llmd.requests.fields import BadRequestError
from llmd.server.errors import (
    BusyError,
    CancelledRequestError,
    DeadlineError,
    ForbiddenError,
    RateLimitError,
    UnauthorizedError,
    UnavailableError,
    UnknownRequestError,
)
from llmd.server.http.problems import problem_of, too_large, unknown_url, wrong_method


@pytest.mark.parametrize(
    ("error", "status", "kind", "code", "param"),
    [
        (RequestError("no", param="top_k"), 400, "invalid_request_error", None, "top_k"),
        (BadRequestError("no", code="c", param="p"), 400, "invalid_request_error", "c", "p"),
        (GrammarError("no", param="p"), 400, "invalid_request_error", "unsupported_schema", "p"),
        (TemplateError("no"), 400, "invalid_request_error", "template_failed", "messages"),
        (UnauthorizedError("no", code="c"), 401, "authentication_error", "c", None),
        (ForbiddenError("no", code="c"), 403, "permission_error", "c", None),
        (NotFoundError("no"), 404, "not_found_error", "model_not_found", "model"),
        (DeviceError("no"), 500, "server_error", "internal_error", None),
        (EngineCrashedError("no"), 500, "server_error", "engine_crashed", None),
        (MemoryBudgetError("no"), 503, "unavailable_error", "out_of_memory", None),
        (ModelError("no"), 503, "unavailable_error", "model_failed", None),
        (UnavailableError("no", code="c"), 503, "unavailable_error", "c", None),
        (DeadlineError("no"), 408, "timeout_error", "deadline_exceeded", None),
        (CancelledRequestError("no"), 499, "cancelled_error", "request_cancelled", None),
        (UnknownRequestError("no"), 404, "not_found_error", "request_not_found", "request_id"),
        (BusyError("no", code="c", hint="", retry_after_s=1), 503, "unavailable_error", "c", None),
        (RateLimitError("no", code="c", hint="", retry_after_s=1), 429, "rate_limit_error", "c", None),
    ],
)
def test_each_error_has_its_place_in_the_table(
    error: LlmdError, status: int, kind: str, code: str | None, param: str | None
) -> None:
    problem = problem_of(error)
    assert problem == Problem(status, kind, code, "no", param, headers=problem.headers)


def test_context_overflow_has_both_numbers() -> None:
    problem = problem_of(ContextLengthError(700, 512))
    assert problem.code == "context_length_exceeded"
    assert problem.param == "messages"
    assert problem.extra == {"n_prompt_tokens": 700, "n_ctx": 512}
    assert "700" in problem.message
    assert "512" in problem.message


def test_clients_are_told_when_to_try_again_or_never() -> None:
    later = problem_of(UnavailableError("busy", code="c", retry_after_s=2))
    assert (later.headers["retry-after"], later.headers["retry-after-ms"]) == ("2", "2000")
    for final in (UnavailableError("failed", code="c"), ModelError("no weights")):
        assert problem_of(final).headers["x-should-retry"] == "false"


def test_hints_reach_the_client() -> None:
    assert "try less" in problem_of(RequestError("no", hint="try less")).message


def test_paths_methods_and_sizes_are_refused_in_json() -> None:
    assert unknown_url("/x").status == 404
    assert too_large(5).status == 413
    refusal = wrong_method("PUT", "/x", frozenset({"GET", "OPTIONS"}))
    assert refusal.status == 405
    assert refusal.headers["Allow"] == "GET, OPTIONS"
    assert "PUT" in refusal.message

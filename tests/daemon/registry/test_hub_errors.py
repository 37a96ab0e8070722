from __future__ import annotations

import pytest

from llmd.api.errors import HubError, LlmdError, NotFoundError
from llmd.registry.hub_errors import HubLostError, hub_error
from llmd.registry.names import HubName

NAME = HubName("org/name", "v1")


def translated(status: int, *, token: bool = False, **headers: str) -> LlmdError:
    """Return the error for a status and its headers."""
    from huggingface_hub.utils import hf_raise_for_status, httpx

    request = httpx.Request("GET", "https://hub.example/x", headers={"authorization": "x"} if token else {})
    response = httpx.Response(
        status, request=request, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )
    with pytest.raises(httpx.HTTPError) as caught:
        hf_raise_for_status(response)
    return hub_error(caught.value, NAME, "https://hub.example")


@pytest.mark.parametrize(
    ("status", "token", "kind", "says", "exit_code"),
    [
        (401, False, NotFoundError, "no model org/name, or it is private", 3),
        (401, True, HubError, "does not let the owner of this token read org/name@v1", 4),
        (403, False, HubError, "refuses access to org/name@v1", 4),
        (404, False, NotFoundError, "no model org/name", 3),
        (400, False, HubError, "answers 400", 1),
        (503, False, HubLostError, "answers 503", 1),
        (429, False, HubLostError, "answers 429", 1),
    ],
)
def test_each_status_says_what_helps(
    *, status: int, token: bool, kind: type[LlmdError], says: str, exit_code: int
) -> None:
    error = translated(status, token=token)
    assert type(error) is kind
    assert says in error.message
    assert (error.exit_code, bool(error.hint)) == (exit_code, True)


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        ("GatedRepo", HubError, "is gated"),
        ("RepoNotFound", NotFoundError, "no model org/name"),
        ("RevisionNotFound", NotFoundError, "no revision v1"),
    ],
)
def test_each_code_of_the_hub_says_what_helps(code: str, kind: type[LlmdError], says: str) -> None:
    error = translated(404, X_Error_Code=code)
    assert type(error) is kind
    assert says in error.message

"""Turn a hub's errors into errors of llmd, with hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llmd.api.errors import HubError, LlmdError, NotFoundError
from llmd.registry.names import HubName

if TYPE_CHECKING:
    from huggingface_hub.utils import httpx

EXIT_REFUSED = 4


class HubLostError(HubError):
    """The connection failed or timed out, or the hub is overloaded: a retry may succeed."""


def hub_error(error: httpx.HTTPError, name: HubName, endpoint: str) -> LlmdError:
    """Return the error of llmd for one of huggingface_hub or its HTTP client."""
    from huggingface_hub import errors

    page = f"{endpoint}/{name.repo}"
    match error:
        case errors.GatedRepoError():
            refused = HubError(
                f"{name} is gated: you must accept its authors' terms first",
                hint=f"accept them at {page}, then set HF_TOKEN to a token of your account",
            )
            refused.exit_code = EXIT_REFUSED
            return refused
        case errors.RevisionNotFoundError():
            return NotFoundError(
                f"{name.repo} has no revision {name.revision}", hint=f"{page} shows its revisions"
            )
        case errors.RepositoryNotFoundError():
            return _not_found(name, endpoint)
        case errors.HfHubHTTPError():
            return _refused(error.response, name, endpoint)
        case _:
            return HubLostError(
                f"the connection to {endpoint} failed: {str(error) or type(error).__name__}",
                hint="check the network, or set a mirror with --hub or HF_ENDPOINT; downloaded data is kept",
            )


def _not_found(name: HubName, endpoint: str) -> NotFoundError:
    return NotFoundError(
        f"{endpoint} has no model {name.repo}, or it is private",
        hint="write the name as ORG/NAME; for a private model set HF_TOKEN to a token of your account",
    )


def _refused(response: httpx.Response, name: HubName, endpoint: str) -> LlmdError:
    status = response.status_code
    if status >= 500 or status in {408, 429}:
        return HubLostError(
            f"{endpoint} answers {status} for {name}", hint="try again later; downloaded data is kept"
        )
    sent_token = "authorization" in response.request.headers
    if status == 404 or (
        status == 401 and not sent_token
    ):  # the public hub answers 401 for a repository that does not exist
        return _not_found(name, endpoint)
    if status in {401, 403}:
        refused = HubError(
            f"{endpoint} does not let the owner of this token read {name}"
            if sent_token
            else f"{endpoint} refuses access to {name}",
            hint="set HF_TOKEN to a token that may read it",
        )
        refused.exit_code = EXIT_REFUSED
        return refused
    return HubError(
        f"{endpoint} answers {status} for {name}",
        hint="check that --hub or HF_ENDPOINT is the address of a model hub",
    )

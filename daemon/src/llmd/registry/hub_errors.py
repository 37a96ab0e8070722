"""What a hub's refusals mean for people, and what helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llmd.api.errors import HubError, LlmdError, NotFoundError
from llmd.registry.names import HubName

if TYPE_CHECKING:
    from huggingface_hub.utils import httpx

EXIT_REFUSED = 4


class HubLostError(HubError):
    """The connection failed or fell silent: another try may succeed."""


def hub_error(error: httpx.HTTPError, name: HubName, endpoint: str) -> LlmdError:
    """The error of huggingface_hub or its HTTP client as one of llmd."""
    from huggingface_hub import errors

    page = f"{endpoint}/{name.repo}"
    match error:
        case errors.GatedRepoError():
            refused = HubError(
                f"{name} is gated: its authors let in those alone who accepted their terms",
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
                hint="check the network, or name a mirror with --hub or HF_ENDPOINT; what has come is kept",
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
            f"{endpoint} answers {status} for {name}", hint="try again later; what has come is kept"
        )
    sent_token = "authorization" in response.request.headers
    if status == 404 or (
        status == 401 and not sent_token
    ):  # so the public hub answers for what does not exist
        return _not_found(name, endpoint)
    if status in {401, 403}:
        refused = HubError(
            f"{endpoint} refuses {name} to the owner of this token"
            if sent_token
            else f"{endpoint} refuses {name}",
            hint="set HF_TOKEN to a token that may read it",
        )
        refused.exit_code = EXIT_REFUSED
        return refused
    return HubError(
        f"{endpoint} answers {status} for {name}", hint="is it a model hub? --hub and HF_ENDPOINT name it"
    )

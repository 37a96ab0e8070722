"""A model hub, reached through huggingface_hub, which is imported when a hub is first opened."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import HubError, LlmdError
from llmd.registry.hub_client import SILENCE_S, guarded_client
from llmd.registry.hub_errors import hub_error
from llmd.registry.manifest import check_path
from llmd.registry.names import HubName


class HubFile(msgspec.Struct, frozen=True):
    """A file of a repository."""

    path: str
    size_bytes: int
    sha256: str
    """Empty for small files, for which the hub knows only git's hash."""
    git_sha1: str

    @property
    def key(self) -> str:
        """Identifies the content; also the name of the unfinished download."""
        return self.sha256 or f"git-{self.git_sha1}"

    @property
    def digest(self) -> str:
        """The hash in the form that Ollama clients expect."""
        return f"sha256:{self.sha256}" if self.sha256 else f"sha1:{self.git_sha1}"


class Listing(msgspec.Struct, frozen=True):
    """A repository at one commit."""

    commit: str
    files: tuple[HubFile, ...]


class Found(msgspec.Struct, frozen=True):
    """A repository that a search found."""

    repo: str = msgspec.field(name="id")
    downloads: int | None = None
    """Downloads in the last 30 days, if the hub says so."""
    gated: bool | str = False
    """Whether its authors' terms must be accepted first; a text says who grants access."""


class Content(msgspec.Struct):
    """A file being downloaded."""

    offset: int
    """Where the chunks begin: the requested offset, or 0 if the hub ignored it."""
    chunks: Iterator[bytes]


class Hub:
    """Lists repositories and opens their files.

    If ``endpoint`` is None, huggingface_hub's default applies: ``HF_ENDPOINT``, else the public hub.
    ``HF_TOKEN``, ``HF_HUB_OFFLINE`` and the proxy variables apply too.
    """

    def __init__(self, endpoint: str | None = None) -> None:
        os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
        from huggingface_hub import HfApi, constants, set_client_factory

        self._api = HfApi(endpoint=endpoint, headers={"user-agent": "llmd"})
        self.endpoint: str = self._api.endpoint
        if constants.HF_HUB_OFFLINE:
            raise HubError("HF_HUB_OFFLINE is set, so nothing can be pulled", hint="unset it to pull")
        set_client_factory(lambda: guarded_client(self.endpoint))

    def list(self, name: HubName) -> Listing:
        """Return the files of a repository at the commit to which the name currently refers.

        Raises:
            NotFoundError: there is no such repository or revision.
            HubError: the hub refuses the request or cannot be reached.
        """
        try:
            with self._errors_translated(name):
                info = self._api.model_info(
                    name.repo, revision=name.revision, files_metadata=True, timeout=SILENCE_S
                )
            return Listing(str(info.sha), tuple(_hub_file(sibling) for sibling in info.siblings or ()))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise HubError(
                f"{self.endpoint} sent an invalid description of {name}: {error}",
                hint="check that --hub or HF_ENDPOINT is the address of a model hub",
            ) from error

    def search(self, text: str, limit: int) -> Sequence[Found]:
        """Return repositories that match a text, the most downloaded first.

        Raises:
            HubError: the hub refuses the search or cannot be reached.
        """
        from huggingface_hub import get_session
        from huggingface_hub.utils import hf_raise_for_status

        # Not `HfApi.list_models`, which tries again for minutes: a person waits for this.
        url = f"{self.endpoint}/api/models"
        query: dict[str, str | int] = {"search": text, "sort": "downloads", "limit": limit}
        try:
            with self._errors_translated(HubName(text)):
                reply = get_session().get(url, params=query, headers=self._headers(), timeout=SILENCE_S)
                hf_raise_for_status(reply)
                return msgspec.json.decode(reply.content, type=prepared(tuple[Found, ...]))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HubError(
                f"{self.endpoint} sent an invalid answer to a search: {error}",
                hint="check that --hub or HF_ENDPOINT is the address of a model hub",
            ) from error

    def opener(self, name: HubName, commit: str) -> Callable[[str, int], AbstractContextManager[Content]]:
        """Return a function that opens a file of one version, given its path and an offset."""
        return lambda path, offset: self.open(name, commit, path, offset)

    @contextlib.contextmanager
    def open(self, name: HubName, commit: str, path: str, offset: int) -> Iterator[Content]:
        """Stream a file from ``offset``, or from 0 if the hub ignores the offset.

        Raises:
            HubLostError: the connection failed; the bytes received so far are valid.
            HubError: the hub refuses the request.
        """
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import hf_raise_for_status

        url = hf_hub_url(name.repo, path, revision=commit, endpoint=self.endpoint)
        headers = {**self._headers(), "accept-encoding": "identity"}
        if offset:
            headers["range"] = f"bytes={offset}-"
        with self._errors_translated(name), get_session().stream("GET", url, headers=headers) as response:
            if response.status_code == 416:  # the file is shorter than our offset
                yield Content(0, iter(()))
                return
            hf_raise_for_status(response)
            begun = offset if response.status_code == 206 else 0
            # Unbuffered: no received byte is lost if the connection breaks.
            yield Content(begun, response.iter_raw())

    def _headers(self) -> dict[str, str]:
        from huggingface_hub.utils import build_hf_headers

        return build_hf_headers(headers={"user-agent": "llmd"})

    @contextlib.contextmanager
    def _errors_translated(self, name: HubName) -> Iterator[None]:
        """Turn errors of the HTTP client into errors of llmd."""
        from huggingface_hub.utils import httpx

        try:
            yield
        except LlmdError:
            raise
        except httpx.HTTPError as error:
            raise hub_error(error, name, self.endpoint) from error


def _hub_file(sibling: Any) -> HubFile:
    check_path(sibling.rfilename)
    lfs = sibling.lfs
    sha256, git_sha1 = (lfs.sha256 if lfs else ""), (sibling.blob_id or "")
    if sibling.size is None or not (_is_hash(sha256, 64) or _is_hash(git_sha1, 40)):
        raise ValueError(f"{sibling.rfilename} has no size or no hash")
    return HubFile(sibling.rfilename, sibling.size, sha256, git_sha1)


def _is_hash(text: str, length: int) -> bool:
    return len(text) == length and all(digit in "0123456789abcdef" for digit in text)

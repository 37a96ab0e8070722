"""A model hub, spoken to through huggingface_hub, which is imported when a hub is first opened."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from llmd.api.errors import HubError, LlmdError
from llmd.registry.hub_client import SILENCE_S, guarded_client
from llmd.registry.hub_errors import hub_error
from llmd.registry.manifest import check_path
from llmd.registry.names import HubName


class HubFile(msgspec.Struct, frozen=True):
    """A file of a repository; ``sha256`` is empty for small ones, of which the hub knows git's hash alone."""

    path: str
    size_bytes: int
    sha256: str
    git_sha1: str

    @property
    def key(self) -> str:
        """What names its content."""
        return self.sha256 or f"git-{self.git_sha1}"

    @property
    def digest(self) -> str:
        """The same, as clients of Ollama read it."""
        return f"sha256:{self.sha256}" if self.sha256 else f"sha1:{self.git_sha1}"


class Listing(msgspec.Struct, frozen=True):
    """A repository at one commit."""

    commit: str
    files: tuple[HubFile, ...]


class Content(msgspec.Struct):
    """A file on its way; ``offset`` is where its chunks really begin."""

    offset: int
    chunks: Iterator[bytes]


class Hub:
    """``endpoint`` None is what huggingface_hub takes: ``HF_ENDPOINT``, else the public hub. So are ``HF_TOKEN``,
    ``HF_HUB_OFFLINE`` and the variables of proxies.
    """

    def __init__(self, endpoint: str | None = None) -> None:
        os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
        from huggingface_hub import HfApi, constants, set_client_factory

        self._api = HfApi(endpoint=endpoint, headers={"user-agent": "llmd"})
        self.endpoint: str = self._api.endpoint
        if constants.HF_HUB_OFFLINE:
            raise HubError("HF_HUB_OFFLINE is set: nothing is pulled", hint="unset it to pull")
        set_client_factory(lambda: guarded_client(self.endpoint))

    def list(self, name: HubName) -> Listing:
        """The files of a repository, at the commit that the name means now.

        Raises:
            NotFoundError: there is no such repository or revision.
            HubError: the hub refuses, or cannot be reached.
        """
        try:
            with self._told(name):
                info = self._api.model_info(
                    name.repo, revision=name.revision, files_metadata=True, timeout=SILENCE_S
                )
            return Listing(str(info.sha), tuple(_hub_file(sibling) for sibling in info.siblings or ()))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise HubError(
                f"what {self.endpoint} says of {name} cannot be used: {error}",
                hint="is it a model hub? --hub and HF_ENDPOINT name it",
            ) from error

    def opener(self, name: HubName, commit: str) -> Callable[[str, int], AbstractContextManager[Content]]:
        """A function that opens a file of one version: its path, and the offset to begin at."""
        return lambda path, offset: self.open(name, commit, path, offset)

    @contextlib.contextmanager
    def open(self, name: HubName, commit: str, path: str, offset: int) -> Iterator[Content]:
        """The content of a file from ``offset`` on; from 0 where the hub cannot begin later.

        Raises:
            HubLostError: the connection failed; what came before counts.
            HubError: the hub refuses.
        """
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import hf_raise_for_status

        url = hf_hub_url(name.repo, path, revision=commit, endpoint=self.endpoint)
        headers = {**self._headers(), "accept-encoding": "identity"}
        if offset:
            headers["range"] = f"bytes={offset}-"
        with self._told(name), get_session().stream("GET", url, headers=headers) as response:
            if response.status_code == 416:  # it has fewer bytes than we do
                yield Content(0, iter(()))
                return
            hf_raise_for_status(response)
            begun = offset if response.status_code == 206 else 0
            # Unbuffered: what has come before a connection breaks is kept.
            yield Content(begun, response.iter_raw())

    def _headers(self) -> dict[str, str]:
        from huggingface_hub.utils import build_hf_headers

        return build_hf_headers(headers={"user-agent": "llmd"})

    @contextlib.contextmanager
    def _told(self, name: HubName) -> Iterator[None]:
        """Say what failed, and what helps."""
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

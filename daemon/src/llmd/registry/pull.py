"""``llmd pull``: a model from a hub into the models, step by step."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

import msgspec

from llmd.api.byte_size import format_bytes
from llmd.api.errors import DiskSpaceError, UnsupportedModelError
from llmd.registry.blobs import Blobs
from llmd.registry.download import Downloader, Open
from llmd.registry.gguf_selection import choose_gguf
from llmd.registry.hub import HubFile, Listing
from llmd.registry.manifest import Manifest, ManifestFile
from llmd.registry.names import HubName
from llmd.registry.pulled_models import PulledModels
from llmd.registry.selection import has_weights, licences, small_files, weight_files, weight_index

SPARE_BYTES = 64 << 20
"""Left free on the disk: a full one harms more than this pull."""


class PullStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a pull is, as Ollama's API words it. ``file`` is the path of the file that ``digest`` names.

    ``completed`` and ``total`` are bytes of that file; ``model`` stands in the last step: what the model is called.
    """

    status: str
    digest: str = ""
    total: int = 0
    completed: int = 0
    file: str = ""
    model: str = ""


class Source(Protocol):
    """What a pull asks of a hub."""

    def list(self, name: HubName) -> Listing: ...
    def opener(self, name: HubName, commit: str) -> Open: ...


def pull(
    name: HubName,
    hub: Source,
    models: PulledModels,
    *,
    make_downloader: Callable[[Blobs, Open], Downloader] = Downloader,
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
) -> Iterator[PullStep]:
    """Pull a model; yields what happens. A pull that ends early goes on where it was when it is begun again.

    Raises:
        NotFoundError: the hub has no such model.
        HubError: the hub refuses, is lost, or sends something wrong.
        DiskSpaceError: the model does not fit on the disk; where that is known before, nothing is fetched.
        UnsupportedModelError: the repository has no weights that llmd loads.
        ConflictError: the name is taken by something that llmd did not fetch.
    """
    models.check_free(name.local)
    yield PullStep("pulling manifest")
    listing = hub.list(name)
    known = models.manifest_of(models.root / name.local)
    if known is not None and (known.source, known.commit) == (name.repo, listing.commit):
        yield PullStep("success", model=name.local)
        return
    with models.pulling():
        downloader = make_downloader(models.blobs, hub.opener(name, listing.commit))
        files = yield from _fetch_all(listing, name.quant, models, downloader, free_bytes)
        yield PullStep("writing manifest")
        models.install(name.local, Manifest(tuple(files), source=name.repo, commit=listing.commit))
    models.collect()
    yield PullStep("success", model=name.local)


def _fetch_all(
    listing: Listing,
    quant: str | None,
    models: PulledModels,
    downloader: Downloader,
    free_bytes: Callable[[Path], int],
) -> Generator[PullStep, None, list[ManifestFile]]:
    """Everything that the model needs. A GGUF file comes where it is asked for, or where there are no other weights."""
    by_path = {file.path: file for file in listing.files}
    fetched: dict[str, ManifestFile] = {}
    gguf = choose_gguf(by_path, quant) if quant or not has_weights(by_path) else []
    if gguf:
        paths = [*licences(by_path), *gguf]
    else:
        paths = yield from _paths(by_path, models, downloader, fetched)
    files = [by_path[path] for path in paths]
    _check_space(files, models, downloader, free_bytes)
    for file in files:
        fetched[file.path] = yield from _fetch(file, downloader)
    for path in gguf:  # parts often lie in a folder; a model's own lie beside each other
        fetched[path] = msgspec.structs.replace(fetched[path], path=PurePosixPath(path).name)
    return [fetched[path] for path in sorted(fetched)]


def _paths(
    by_path: Mapping[str, HubFile],
    models: PulledModels,
    downloader: Downloader,
    fetched: dict[str, ManifestFile],
) -> Generator[PullStep, None, list[str]]:
    """The files of a model with safetensors. An index of the weights comes first: it says which they are, and so how many
    bytes there will be.
    """
    index = weight_index(by_path)
    content = None
    if index is not None:
        fetched[index] = yield from _fetch(by_path[index], downloader)
        content = models.blobs.path(fetched[index].sha256).read_bytes()
    paths = [*small_files(by_path), *weight_files(by_path, content)]
    if missing := [path for path in paths if path not in by_path]:
        raise UnsupportedModelError(
            f"the repository lacks {missing[0]}, which its index names",
            hint="it is damaged, or being written: try later",
        )
    return paths


def _fetch(file: HubFile, downloader: Downloader) -> Generator[PullStep, None, ManifestFile]:
    status = f"pulling {file.digest.partition(':')[2][:12]}"
    step = PullStep(status, file.digest, file.size_bytes, downloader.have(file), file.path)
    yield step
    last = step
    fetching = downloader.fetch(file)
    while True:
        try:
            progress = next(fetching)
        except StopIteration as done:
            if last.completed != file.size_bytes:
                yield msgspec.structs.replace(step, completed=file.size_bytes)
            return ManifestFile(file.path, file.size_bytes, done.value)
        if progress.verifying:
            yield PullStep(f"verifying {file.digest.partition(':')[0]} digest", file=file.path)
        else:
            last = msgspec.structs.replace(step, completed=progress.completed)
            yield last


def _check_space(
    files: Sequence[HubFile], models: PulledModels, downloader: Downloader, free_bytes: Callable[[Path], int]
) -> None:
    """Refuse what cannot fit before a weight is fetched."""
    models.blobs.partial.mkdir(parents=True, exist_ok=True)
    total = sum(file.size_bytes for file in files)
    here = sum(downloader.have(file) for file in files)
    free = free_bytes(models.blobs.partial)
    if total - here + SPARE_BYTES > free:
        raise DiskSpaceError(
            f"the model has {format_bytes(total)}, {format_bytes(here)} of them are here already, and {models.root} has "
            f"{format_bytes(free)} free, of which {format_bytes(SPARE_BYTES)} are to stay free: "
            f"{format_bytes(total - here + SPARE_BYTES - free)} are missing",
            hint="make room (`llmd rm MODEL` removes one), or put the models directory on a larger disk",
        )

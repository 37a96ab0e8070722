"""``llmd pull``: download a model from a hub into the store."""

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
"""Left free on the disk, because a full disk affects more than this pull."""


class PullStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """The progress of a pull, with the field names of Ollama's API."""

    status: str
    digest: str = ""
    """Hash of the file being downloaded."""
    total: int = 0
    """Size of that file in bytes."""
    completed: int = 0
    """Bytes of that file received so far."""
    file: str = ""
    """Path of that file in the repository."""
    model: str = ""
    """The model's name in the store; set in the last step only."""


class Source(Protocol):
    """The part of a hub that a pull uses."""

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
    """Pull a model and yield the progress. A pull that ended early is resumed when it is started again.

    Raises:
        NotFoundError: the hub has no such model.
        HubError: the hub refuses the request, cannot be reached, or sends wrong data.
        DiskSpaceError: the model does not fit on the disk. This is checked before weights are downloaded.
        UnsupportedModelError: the repository has no weights that llmd can load.
        ConflictError: the name is taken by something that llmd did not download.
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
    """Download every file of the model: a GGUF file if requested, or if there are no other weights."""
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
    for path in gguf:  # repositories often keep parts in a folder; here they go next to the other files
        fetched[path] = msgspec.structs.replace(fetched[path], path=PurePosixPath(path).name)
    return [fetched[path] for path in sorted(fetched)]


def _paths(
    by_path: Mapping[str, HubFile],
    models: PulledModels,
    downloader: Downloader,
    fetched: dict[str, ManifestFile],
) -> Generator[PullStep, None, list[str]]:
    """Return the files of a model with safetensors.

    An index of the weights is downloaded first: without it neither their names nor their total size is known.
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
            hint="it is damaged or still being uploaded: try again later",
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
    """Refuse a model that does not fit on the disk, before any weight is downloaded."""
    models.blobs.partial.mkdir(parents=True, exist_ok=True)
    total = sum(file.size_bytes for file in files)
    present = sum(downloader.have(file) for file in files)
    free = free_bytes(models.blobs.partial)
    if total - present + SPARE_BYTES > free:
        raise DiskSpaceError(
            f"the model has {format_bytes(total)}, of which {format_bytes(present)} are downloaded already; "
            f"{models.root} has {format_bytes(free)} free and {format_bytes(SPARE_BYTES)} must stay free: "
            f"{format_bytes(total - present + SPARE_BYTES - free)} are missing",
            hint="free some space (`llmd rm MODEL` removes a model), or move the models to a larger disk",
        )

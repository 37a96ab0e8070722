"""The models that llmd downloaded, and copies of them: contents by hash, versions by manifest, names by link.

Below the models directory, ``.store/`` holds ``blobs/`` (each content once, by its SHA-256), ``manifests/``
and ``versions/`` (a plain model directory for each manifest, its files hard links to blobs). A name such as
``org/name`` is a link to a version. Two names of one version, and two versions with common files, thus share
disk space. A newer pull changes the link of the name; a running engine keeps the version that it loaded.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from llmd.api.errors import ConflictError, NotFoundError
from llmd.registry.blobs import Blobs
from llmd.registry.derived import DerivedModels
from llmd.registry.locks import FileLock, locked
from llmd.registry.manifest import Manifest
from llmd.registry.names import DERIVED, check_model_name

STORE = ".store"


class PulledModels:
    """Manages the store below ``root``, the models directory. Safe for several threads and processes."""

    def __init__(self, root: Path, reserved: Collection[str] = ()) -> None:
        """``reserved`` are names that no model here may have."""
        self.root = root
        store = root / STORE
        self.blobs = Blobs(store / "blobs", store / "partial")
        self._manifests = store / "manifests"
        self._versions = store / "versions"
        self._leases = store / "leases"
        self._lock = store / "lock"
        self._pulling = store / "pulling"
        self._reserved = reserved

    @contextlib.contextmanager
    def pulling(self) -> Iterator[None]:
        """Keep blobs from being freed during a pull, when no manifest names them yet."""
        with locked(self._pulling, alone=False):
            yield

    def version_of(self, directory: Path) -> str | None:
        """Return the version to which a model directory leads; None if llmd did not install it."""
        try:
            target = directory.resolve()
        except (OSError, RuntimeError):
            return None
        return target.name if target.parent == self._versions.resolve() else None

    def manifest_of(self, directory: Path) -> Manifest | None:
        """Return the manifest of a model directory; None if llmd did not install it."""
        version = self.version_of(directory)
        return None if version is None else self._read_manifest(version)

    def lease(self, directory: Path) -> FileLock | None:
        """Keep a version from being removed until the lease is closed.

        Return None for a model that llmd did not install, because llmd never removes it.

        Raises:
            NotFoundError: it is just being removed.
        """
        version = self.version_of(directory)
        if version is None:
            return None
        lease = FileLock.take(self._leases / version, alone=False, wait=False)
        if lease is None or not (self._versions / version).is_dir():
            raise NotFoundError(
                f"{directory.name} is being removed", hint="`llmd list` shows the remaining models"
            )
        return lease

    def install(self, name: str, manifest: Manifest) -> Path:
        """Point ``name`` to a version whose blobs are all present; return its directory.

        Raises:
            ConflictError: the name belongs to something that llmd did not download.
        """
        with self._changing():
            self.check_free(name)
            self._write_version(manifest)
            self._link(name, manifest.id)
        return self.root / name

    def copy(self, source: Path, name: str) -> None:
        """Add another name for the version to which the directory ``source`` leads.

        Raises:
            NotFoundError: it leads to no version.
            ConflictError: the name is taken.
            RequestError: the name is not valid.
        """
        name = check_model_name(name)
        with self.pulling():
            manifest = self.manifest_of(source)
            if manifest is None:
                raise NotFoundError(f"llmd did not download {source}", hint="`llmd list` shows every model")
            with self._changing():
                if os.path.lexists(self.root / name):
                    raise ConflictError(
                        f"there is already a model {name}",
                        hint=f"choose another name, or remove it with `llmd rm {name}`",
                    )
                self.check_free(name)
                self._write_version(manifest)
                self._link(name, manifest.id)

    def remove(self, name: str) -> int:
        """Remove a name and everything that only it used; return the bytes freed.

        Raises:
            NotFoundError: there is no such model.
            ConflictError: it is in use, or llmd did not download it.
        """
        with self._changing():
            link = self.root / check_model_name(name)
            version = self.version_of(link)
            if version is None or not link.is_symlink():
                raise self._not_ours(name, link)
            if list(self._names_of(version)) == [link] and self._is_leased(version):
                raise ConflictError(
                    f"{name} is loaded or being pulled",
                    hint=f"unload it with `llmd stop {name}`, then remove it",
                )
            link.unlink()
            with contextlib.suppress(OSError):  # not empty: other models of that organisation
                if link.parent != self.root:
                    link.parent.rmdir()
        return self.collect()

    def collect(self) -> int:
        """Remove everything that no name, lease or pull needs; return the bytes freed."""
        with self._changing():
            for version in self._all_versions():
                if not any(self._names_of(version)):
                    self._remove_version(version)
            alone = FileLock.take(self._pulling, alone=True, wait=False)
            if alone is None:
                return 0
            with contextlib.closing(alone):
                known = [self._read_manifest(version) for version in self._all_versions()]
                return self.blobs.free(
                    {file.sha256 for manifest in known if manifest for file in manifest.files}
                )

    def _remove_version(self, version: str) -> None:
        """Remove a version unless it is leased; it cannot be leased while it is removed."""
        lease = FileLock.take(self._leases / version, alone=True, wait=False)
        if lease is None:
            return
        with contextlib.closing(lease):
            shutil.rmtree(self._versions / version, ignore_errors=True)
            (self._manifests / version).unlink(missing_ok=True)
            (self._leases / version).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        with locked(self._lock, alone=True):
            yield

    def check_free(self, name: str) -> None:
        """Check that a name is free or refers to a version that may be replaced.

        Raises:
            ConflictError: the name is reserved or inside another model, or llmd did not download what is
                there.
        """
        place = self.root / name
        derived = DerivedModels(self.root / DERIVED).find(name)
        if derived is not None:
            raise ConflictError(
                f"{name} is a model that was derived from {derived[1].base}",
                hint=f"choose another name, or remove it with `llmd rm {name}`",
            )
        if name in self._reserved:
            raise ConflictError(f"{name} is the name of a built-in model", hint="choose another name")
        if os.path.lexists(place) and not (place.is_symlink() and self.version_of(place)):
            raise ConflictError(
                f"{place} already exists, and llmd did not download it",
                hint="move it away, or choose another name",
            )
        for parent in place.parents:
            if parent != self.root and parent.is_relative_to(self.root) and self.version_of(parent):
                raise ConflictError(f"{parent.name} is a model itself", hint="choose another name")

    def _write_version(self, manifest: Manifest) -> None:
        """Create the directory of a version: either complete or not at all."""
        directory = self._versions / manifest.id
        if directory.is_dir() and self._read_manifest(manifest.id) is not None:
            return
        building = self._versions / f".{manifest.id}"
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(directory, ignore_errors=True)
        for file in manifest.files:
            place = building / file.path
            place.parent.mkdir(parents=True, exist_ok=True)
            _link_file(self.blobs.path(file.sha256), place)
        self._manifests.mkdir(parents=True, exist_ok=True)
        (self._manifests / manifest.id).write_bytes(manifest.encoded())
        building.rename(directory)

    def _link(self, name: str, version: str) -> None:
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        new = place.with_name(f".{place.name}.new")
        new.unlink(missing_ok=True)
        new.symlink_to(os.path.relpath(self._versions / version, place.parent))
        new.replace(place)

    def _read_manifest(self, version: str) -> Manifest | None:
        try:
            return Manifest.decode((self._manifests / version).read_bytes())
        except (OSError, msgspec.DecodeError, ValueError):
            return None

    def _all_versions(self) -> list[str]:
        return [entry.name for entry in _entries(self._versions) if entry.name[0] != "."]

    def _names_of(self, version: str) -> Iterator[Path]:
        for entry in _entries(self.root):
            if entry.name[0] == ".":
                continue
            links = [entry] if entry.is_symlink() else _entries(entry)
            yield from (link for link in links if link.is_symlink() and self.version_of(link) == version)

    def _is_leased(self, version: str) -> bool:
        lease = FileLock.take(self._leases / version, alone=True, wait=False)
        if lease is not None:
            lease.close()
        return lease is None

    def _not_ours(self, name: str, place: Path) -> NotFoundError | ConflictError:
        if name in self._reserved:
            return ConflictError(f"{name} is built in", hint="it cannot be removed")
        if os.path.lexists(place):
            return ConflictError(f"llmd did not download {place}", hint="delete the directory yourself")
        return NotFoundError(f"there is no model {name}", hint="`llmd list` shows every model")


def _link_file(blob: Path, place: Path) -> None:
    try:
        place.hardlink_to(blob)
    except FileNotFoundError:
        raise
    except OSError:  # no hard links here, or too many to this blob
        place.symlink_to(os.path.relpath(blob, place.parent))


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:  # missing, or not a directory
        return []

"""A small model hub on this machine, which speaks the protocol of the public one: metadata, contents by
commit, redirects of large files, ranges, and whatever can go wrong on the way.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import queue
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

COMMIT = "1" * 40
LFS_FROM_BYTES = 1000
START_LIMIT_S = 20
PIECE_BYTES, SLOW_S = 1 << 16, 0.05


class Repository:
    """A model at one or several commits. ``gated`` refuses who has not this token."""

    def __init__(self, files: dict[str, bytes], *, commit: str = COMMIT, token: str | None = None) -> None:
        self.revisions: dict[str, str] = {"main": commit}
        self.commits: dict[str, dict[str, bytes]] = {commit: files}
        self.token = token

    @classmethod
    def of(cls, directory: Path, **options: Any) -> Repository:
        """The files of a directory, and some that no model needs."""
        files = {
            path.relative_to(directory).as_posix(): path.read_bytes()
            for path in sorted(directory.rglob("*"))
            if path.is_file()
        }
        extras = {
            "pytorch_model.bin": b"pickle",
            "modeling_x.py": b"import os",
            "onnx/model.onnx": b"graph",
            "README.md": b"#",
        }
        return cls({**extras, **files}, **options)

    def add(self, revision: str, commit: str, files: dict[str, bytes]) -> None:
        """Another version."""
        self.revisions[revision] = commit
        self.commits[commit] = files


class Hub:
    """The files of the hub, the requests it got, and how it misbehaves.

    ``cut_after``: bytes after which the connection for a file breaks, one entry for each request.
    ``failing``: statuses of the next answers. ``described``: replaces the true description of every model.
    ``damaged``: files with the number of answers that have a wrong byte. ``hold``: contents wait until the
    event is set. ``slow``: files that arrive piece by piece as long as they are in this set.
    """

    def __init__(self) -> None:
        self.hold = threading.Event()
        self.url = ""
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.repositories: dict[str, Repository] = {}
        self.asked: list[str] = []
        self.ranges: list[str | None] = []
        self.tokens: list[str | None] = []
        self.agents: set[str] = set()
        self.sent: Counter[str] = Counter()
        self.cut_after: dict[str, list[int]] = {}
        self.damaged: Counter[str] = Counter()
        self.slow: set[str] = set()
        self.ignores_ranges = False
        self.redirect_to = ""
        self.failing: list[int] = []
        self.described: object = None
        self.hold.set()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/models", self._search)
        app.router.add_get("/api/models/{repo:.+?}/revision/{revision:[^/]+}", self._describe)
        app.router.add_get("/api/models/{repo:.+}", self._describe)
        app.router.add_get("/cdn/{repo:.+?}/at/{commit}/{path:.+}", self._content)
        app.router.add_get("/{repo:.+?}/resolve/{revision}/{path:.+}", self._resolve)
        return app

    def _find(self, request: web.Request) -> tuple[Repository, str]:
        self.asked.append(request.path)
        self.agents.add(request.headers.get("user-agent", ""))
        if self.failing:
            raise _status(self.failing.pop(0))
        repository = self.repositories.get(request.match_info["repo"])
        if repository is None:
            raise web.HTTPUnauthorized(text="Invalid username or password.")
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if repository.token is not None and given != repository.token:
            headers = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}
            raise web.HTTPForbidden(headers=headers) if given else web.HTTPUnauthorized(headers=headers)
        revision = request.match_info.get("revision", "main")
        commit = repository.revisions.get(revision, revision)
        if commit not in repository.commits:
            raise web.HTTPNotFound(headers={"X-Error-Code": "RevisionNotFound"})
        return repository, commit

    async def _search(self, request: web.Request) -> web.Response:
        """Repositories whose names contain the text; those added later have more downloads."""
        if self.failing:
            raise _status(self.failing.pop(0))
        wanted, limit = request.query.get("search", "").lower(), int(request.query["limit"])
        found = [
            {"id": repo, "downloads": 10 * place, "gated": "manual" if one.token else False}
            for place, (repo, one) in enumerate(self.repositories.items(), 1)
            if wanted in repo.lower()
        ]
        return web.json_response(found[::-1][:limit])

    async def _describe(self, request: web.Request) -> web.Response:
        repository, commit = self._find(request)
        if self.described is not None:
            page = (
                self.described if isinstance(self.described, bytes) else json.dumps(self.described).encode()
            )
            return web.Response(body=page)
        files = repository.commits[commit]
        siblings = [_sibling(path, content) for path, content in files.items()]
        return web.json_response({"id": request.match_info["repo"], "sha": commit, "siblings": siblings})

    async def _resolve(self, request: web.Request) -> web.StreamResponse:
        repository, commit = self._find(request)
        path = request.match_info["path"]
        content = repository.commits[commit].get(path)
        if content is None:
            raise web.HTTPNotFound(headers={"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
        if len(content) >= LFS_FROM_BYTES:
            place = self.redirect_to or f"{self.url}/cdn/{request.match_info['repo']}/at/{commit}/{path}"
            raise web.HTTPFound(place, headers={"X-Repo-Commit": commit, "X-Linked-Etag": _sha256(content)})
        return await self._send(request, path, content, commit)

    async def _content(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers.get("authorization"))
        commit, path = request.match_info["commit"], request.match_info["path"]
        content = self.repositories[request.match_info["repo"]].commits[commit][path]
        return await self._send(request, path, content, commit)

    async def _send(self, request: web.Request, path: str, content: bytes, commit: str) -> web.StreamResponse:
        await asyncio.get_running_loop().run_in_executor(None, self.hold.wait)
        asked = request.headers.get("range")
        self.ranges.append(asked)
        offset = (
            0 if asked is None or self.ignores_ranges else int(asked.removeprefix("bytes=").removesuffix("-"))
        )
        if self.damaged[path]:
            self.damaged[path] -= 1
            content = bytes([content[0] ^ 1]) + content[1:]
        if offset >= len(content) > 0:
            raise web.HTTPRequestRangeNotSatisfiable
        body = content[offset:]
        headers = {
            "ETag": f'"{_git_sha1(content)}"',
            "X-Repo-Commit": commit,
            "Content-Length": str(len(body)),
        }
        response = web.StreamResponse(status=206 if offset else 200, headers=headers)
        await response.prepare(request)
        cut = bool(self.cut_after.get(path))
        if cut:
            body = body[: self.cut_after[path].pop(0)]
        self.sent[path] += len(body)  # before a client that has it all goes on
        for start in range(0, len(body), PIECE_BYTES):
            await response.write(body[start : start + PIECE_BYTES])
            if path in self.slow:
                await asyncio.sleep(SLOW_S)
        if cut:
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write_eof()
        return response


def _status(status: int) -> web.HTTPException:
    return {500: web.HTTPInternalServerError, 503: web.HTTPServiceUnavailable, 429: web.HTTPTooManyRequests}[
        status
    ]()


def _sibling(path: str, content: bytes) -> dict[str, Any]:
    described: dict[str, Any] = {"rfilename": path, "size": len(content), "blobId": _git_sha1(content)}
    if len(content) >= LFS_FROM_BYTES:
        described["lfs"] = {"size": len(content), "sha256": _sha256(content), "pointerSize": 130}
    return described


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@contextmanager
def running_hub() -> Iterator[Hub]:
    """A hub in a thread of the test process."""
    hub = Hub()
    started: queue.SimpleQueue[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = queue.SimpleQueue()

    async def serve() -> None:
        runner = web.AppRunner(hub.app(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ending = asyncio.Event()
        port = runner.addresses[0][1]
        started.put((asyncio.get_running_loop(), ending, port))
        await ending.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="hub of a test")
    thread.start()
    loop, ending, port = started.get(timeout=START_LIMIT_S)
    hub.url = f"http://127.0.0.1:{port}"
    try:
        yield hub
    finally:
        hub.hold.set()
        loop.call_soon_threadsafe(ending.set)
        thread.join()

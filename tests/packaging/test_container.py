"""The container is built from a bare Debian and answers; keys and signals work as for any daemon."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tools.release.targets import SUITES

pytestmark = [pytest.mark.packaging, pytest.mark.exhaustive, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[2]
SUITE = SUITES.get(f"{sys.version_info.major}.{sys.version_info.minor}", "")
"""The Debian whose Python the wheelhouse is for."""
LACKING = [name for name in ("buildah", "mmdebstrap") if shutil.which(name) is None]
NEEDS_BUILDAH = pytest.mark.skipif(bool(LACKING), reason=f"needs {', '.join(LACKING)}")
NEEDS_SUITE = pytest.mark.skipif(not SUITE, reason="no Debian has this Python")
PORT = "--env=LLMD_ADDR=unix:/tmp/llmd/llmd.sock,0.0.0.0:0"
"""Any free port: containers of this test share the network of the machine."""
READY_LIMIT_S = 120


@dataclass(frozen=True)
class Image:
    """The image, in a storage of the test."""

    storage: Path

    def buildah(self, *words: str | Path) -> list[str]:
        folders = ("--root", self.storage / "images", "--runroot", self.storage / "run")
        return ["buildah", "--storage-driver", "vfs", *map(str, (*folders, *words))]

    def run(self, *words: str | Path) -> str:
        done = subprocess.run(self.buildah(*words), check=False, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = json.loads(self.run("inspect", "--type", "image", "localhost/llmd"))[
            "Docker"
        ]["config"]
        return config


@dataclass(frozen=True)
class Container:
    """A container of the image."""

    image: Image
    name: str

    def command(self, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
        """Return a command line that runs what the image runs, with other arguments or its own."""
        config = self.image.config
        program = [*config["Entrypoint"], *(arguments or config["Cmd"])]
        return self.image.buildah("run", "--isolation=chroot", PORT, *options, self.name, "--", *program)

    def llmd(self, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        command = self.command(*arguments, options=options)
        return subprocess.run(command, check=False, capture_output=True, text=True)

    def is_healthy(self) -> bool:
        kind, *check = self.image.config["Healthcheck"]["Test"]
        assert kind == "CMD"
        command = self.image.buildah("run", "--isolation=chroot", self.name, "--", *check)
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    @contextmanager
    def serve(self) -> Iterator[tuple[subprocess.Popen[str], str]]:
        """Run what the image runs; yield the process and the line that it prints when it is ready."""
        with subprocess.Popen(self.command(), stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield process, process.stdout.readline()
            finally:
                for one in daemons_below(process.pid) if process.poll() is None else ():
                    one.kill()


@dataclass(frozen=True)
class Daemon:
    """A process of this machine that is a daemon in a container."""

    pid: int

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    @property
    def user(self) -> str:
        status = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(line.split()[1] for line in status if line.startswith("Uid:"))

    def _signal(self, number: int) -> None:
        subprocess.run(["kill", f"-{number}", str(self.pid)], check=False)


def daemons_below(pid: int) -> list[Daemon]:
    """Return the processes below another one that run `llmd serve`."""
    found = []
    threads = Path(f"/proc/{pid}/task").iterdir()  # any thread of buildah may have started a process
    for child in " ".join((thread / "children").read_text() for thread in threads).split():
        words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        is_daemon = (
            words[0].startswith(b"/opt/llmd/") and b"serve" in words
        )  # buildah's own have another name
        found += [Daemon(int(child))] if is_daemon else daemons_below(int(child))
    return found


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, wheelhouse: Path) -> Image:
    """The image, built on a Debian that mmdebstrap makes, with packages of the wheelhouse."""
    folder = tmp_path_factory.mktemp("image")
    made = Image(folder / "storage")
    base = folder / "base"
    base.mkdir()
    bootstrap = ["mmdebstrap", "--quiet", "--variant=minbase", SUITE, str(base / "base.tar")]
    subprocess.run(bootstrap, check=True)
    (base / "Containerfile").write_text("FROM scratch\nADD base.tar /\n")
    made.run("build", "--tag", "base", base)
    packages = ("--build-arg=PIP_NO_INDEX=1", "--build-arg=PIP_FIND_LINKS=/wheelhouse")
    made.run(
        "build", "--isolation=chroot", "--format=docker", "--tag", "llmd", "--build-arg=BASE=localhost/base",
        f"--volume={wheelhouse.resolve()}:/wheelhouse:ro", *packages, ROOT,
    )  # fmt: skip
    return made


def ask(url: str, key: str) -> str:
    body = {"model": "guide", "messages": [{"role": "user", "content": "How do I see my devices?"}]}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as reply:
        return str(json.load(reply)["choices"][0]["message"]["content"])


@pytest.fixture(scope="module")
def container(image: Image) -> Iterator[Container]:
    """A container with an empty volume, which is removed at the end."""
    name = image.run("from", "localhost/llmd").strip()
    yield Container(image, name)
    image.run("rm", name)


@NEEDS_BUILDAH
@NEEDS_SUITE
def test_the_daemon_does_not_start_without_a_key(container: Container) -> None:
    done = container.llmd("serve", options=("--env=XDG_CONFIG_HOME=/tmp/none",))
    assert done.returncode != 0
    assert "llmd keys add" in done.stderr


@NEEDS_BUILDAH
@NEEDS_SUITE
def test_it_answers_who_has_the_key_and_ends_on_sigterm(container: Container) -> None:
    key = container.llmd("keys", "add", "someone").stdout.strip().splitlines()[-1]
    assert not container.is_healthy()
    with container.serve() as (process, line):
        (port,) = re.findall(r"http://[^:]+:(\d+)", line)
        assert container.is_healthy()
        assert "llmd devices" in ask(f"http://127.0.0.1:{port}", key)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(f"http://127.0.0.1:{port}", "another key")
        (daemon,) = daemons_below(process.pid)
        assert daemon.user == "10001"
        daemon.terminate()
        assert process.wait(READY_LIMIT_S) == 0


@NEEDS_BUILDAH
@NEEDS_SUITE
def test_it_contains_no_compiler_and_no_caches(container: Container) -> None:
    find = "ls /usr/bin/*gcc* /usr/bin/*g++* /src /var/lib/apt/lists/* /root/.cache 2>/dev/null || true"
    shell = ("run", "--isolation=chroot", "--user=root", container.name, "--", "sh", "-c", find)
    assert container.image.run(*shell).strip() in {"", "/var/lib/apt/lists/partial:"}

"""Starts the two servers that are compared."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.peer import waiting_environment
from bench.startup import environment_below
from llmd.process.limits import child_ids, processor_seconds
from llmd_backend_cpu.plugin import TEST_ISA

START_LIMIT_S = 120.0


@dataclass(frozen=True)
class Server:
    """A running server."""

    name: str
    url: str
    pid: int

    def cpu_s(self) -> float:
        """Return the CPU time of the process and its descendants so far."""
        return family_cpu_s(self.pid)

    def resident_bytes(self) -> int:
        """Return the memory of the process and its descendants; shared pages count once."""
        return sum(_proportional_bytes(pid) for pid in family(self.pid))


@contextmanager
def llmd_server(
    model: Path, folder: Path, *, quant: str | None, slots: int, context_len: int, isa: str | None = None
) -> Iterator[Server]:
    """Run the daemon on the CPU backend with quantised weights, with its caches in the folder.

    Without ``quant`` the weights are computed on as stored; ``isa`` limits the instruction set.
    """
    port = free_port()
    command = llmd_command(port, model, slots=slots, context_len=context_len)
    command += ["--quant", quant] if quant else []
    environment = environment_below(folder) | {"LLMD_ADDR": "", TEST_ISA: isa or ""}
    with _running("llmd", command, port, "/ready", environment) as server:
        yield server


@contextmanager
def llama_server(
    program: Path,
    gguf: Path,
    *,
    slots: int,
    context_len: int,
    threads: int,
    waiting: str,
    options: Sequence[str] = (),
) -> Iterator[Server]:
    """Run llama.cpp's server, or that of a fork; ``waiting`` is the wait policy of its threads
    (`bench.peer`).
    """
    port = free_port()
    command = llama_command(program, port, gguf, slots=slots, context_len=context_len, threads=threads)
    command += options
    environment = os.environ | waiting_environment(waiting)
    with _running("llama-server", command, port, "/health", environment) as server:
        yield server


def llmd_command(port: int, *models: Path, slots: int, context_len: int) -> list[str]:
    """Return the command of the daemon on the CPU backend."""
    return [
        *(sys.executable, "-m", "llmd.cli.main", "serve", *map(str, models), "--addr", f"127.0.0.1:{port}"),
        *("--device", "cpu", "--slots", str(slots), "--max-ctx", str(context_len)),
    ]


def llama_command(
    program: Path, port: int, gguf: Path, *, slots: int, context_len: int, threads: int
) -> list[str]:
    """Return the command of llama.cpp's server, with one slot per request, flash attention and continuous
    batching.

    Its RAM cache of idle slots is off: it would copy prompts that never come again. Prefixes in slots are
    still reused.
    """
    return [
        *(str(program), "--model", str(gguf), "--host", "127.0.0.1", "--port", str(port)),
        *("--parallel", str(slots), "--ctx-size", str(slots * context_len), "--cont-batching"),
        *("--flash-attn", "on", "--threads", str(threads), "--threads-batch", str(threads)),
        *("--cache-ram", "0", "--log-disable"),
    ]


@contextmanager
def _running(
    name: str, command: Sequence[str], port: int, health: str, environment: Mapping[str, str]
) -> Iterator[Server]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(url + health, process)
        yield Server(name, url, process.pid)
    finally:
        process.terminate()
        process.wait()


def wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a URL answers 200."""
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - http on this machine
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"{process.args!r} did not become ready; it ended with {process.poll()}")


def free_port() -> int:
    """Return an unused port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    return [pid, *(member for child in child_ids(pid) for member in family(child))]


def family_cpu_s(pid: int) -> float:
    """Return the CPU time of a process and its running and ended descendants so far."""
    return sum(processor_seconds(member) or 0.0 for member in family(pid))


def cpu_s(pid: int) -> float:
    """Return the CPU time of one process; 0 if it has just ended, because its parent has the time then."""
    return processor_seconds(pid, with_children=False) or 0.0


def _proportional_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))

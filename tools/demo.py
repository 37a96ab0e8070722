"""``make demo``: starts a daemon, shows its devices, asks a model two questions and stops the daemon.

All files are in a temporary folder. A daemon that is already running is not affected.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

LLMD = Path(sys.executable).with_name("llmd")
QUESTION = "How do I see my devices?"
SECOND_QUESTION = "How do I stop the daemon?"
STOP_LIMIT_S = 60


def main() -> None:
    """Run the demo with the model named on the command line, else with the guide."""
    model = sys.argv[1] if len(sys.argv) > 1 else "guide"
    with tempfile.TemporaryDirectory(prefix="llmd-demo-") as folder:
        environment = environment_below(Path(folder))
        with daemon(model, environment) as (process, url):
            show(environment, "devices")
            show(environment, "run", model, QUESTION, "--max-tokens", "100", "--stats")
            ask_over_http(url, Path(model).name)
            show(environment, "ps")
            show(environment, "stop", "--daemon")
            status = process.wait(STOP_LIMIT_S)
    if status != 0:
        sys.exit(f"the daemon exited with {status}")
    print("\nthe daemon has stopped; run `make help` for more targets")


def environment_below(folder: Path) -> dict[str, str]:
    """Return variables that put files and sockets into one folder, and that ignore the user's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LLMD_")}
    homes = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "STATE", "CACHE")}
    addresses = f"unix:{folder}/llmd/llmd.sock,127.0.0.1:0"
    return kept | homes | {"XDG_RUNTIME_DIR": str(folder), "LLMD_ADDR": addresses}


@contextmanager
def daemon(model: str, environment: Mapping[str, str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a daemon; yield it and its HTTP address once it is ready. It is stopped if the demo fails."""
    command = (str(LLMD), "serve", model)
    print_command("serve", model)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            print(line, end="", flush=True)
            found = re.search(r"http://[^\s;]+", line)
            if found is None:
                sys.exit("the daemon did not start")
            yield process, found.group()
        finally:
            if process.poll() is None:
                process.terminate()


def show(environment: Mapping[str, str], *arguments: str) -> None:
    """Run ``llmd`` as a user would; exit if it fails."""
    print_command(*arguments)
    done = subprocess.run((str(LLMD), *arguments), env=environment, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"llmd {arguments[0]} exited with {done.returncode}")


def ask_over_http(url: str, model: str) -> None:
    """Ask through OpenAI's API, as any program would."""
    body = {"model": model, "messages": [{"role": "user", "content": SECOND_QUESTION}], "max_tokens": 100}
    print(f"\n$ curl {url}/v1/chat/completions -d {shlex.quote(json.dumps(body))}", flush=True)
    request = urllib.request.Request(  # noqa: S310 - the address is ours
        f"{url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    directly = urllib.request.build_opener(
        urllib.request.ProxyHandler({})
    )  # do not use a proxy for this machine
    with directly.open(request) as reply:
        answer = json.load(reply)
    print(json.dumps(answer["choices"][0], indent=2, ensure_ascii=False), flush=True)


def print_command(*arguments: str) -> None:
    """Print a command as a user would type it."""
    print("\n$ llmd", shlex.join(arguments), flush=True)


if __name__ == "__main__":
    main()

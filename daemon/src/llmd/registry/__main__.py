"""Pull a model in a separate process: ``python -m llmd.registry ORG/NAME --models DIRECTORY``.

The daemon runs pulls this way so that its event loop does not hash gigabytes and huggingface_hub stays out of
its memory. Each step is a line of JSON on standard output; an error is the last line. The pull ends when the
reader closes the pipe.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

import msgspec

from llmd.api.errors import LlmdError
from llmd.registry.hub import Hub
from llmd.registry.names import parse_hub_name
from llmd.registry.pacing import paced
from llmd.registry.pull import pull
from llmd.registry.pulled_models import PulledModels


class PullFailed(msgspec.Struct, frozen=True):
    """Why a pull ended early."""

    error: str
    """Name of a class of `llmd.api.errors`."""
    message: str
    hint: str = ""
    exit_code: int = 1


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="llmd.registry")
    parser.add_argument("name")
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--hub")
    parser.add_argument("--reserved", action="append", default=[])
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        models = PulledModels(options.models, options.reserved)
        for step in paced(pull(parse_hub_name(options.name), Hub(options.hub), models)):
            _say(step)
    except LlmdError as error:
        _say(PullFailed(_kind(error), error.message, error.hint, error.exit_code))
        return error.exit_code
    except OSError as error:
        hint = "`llmd config paths` shows where models are kept"
        _say(PullFailed("LlmdError", f"{error.filename or 'the system'}: {error.strerror or error}", hint))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _kind(error: LlmdError) -> str:
    """Return the name of the class of `llmd.api.errors` from which the daemon can rebuild the error."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == LlmdError.__module__)


def _say(line: msgspec.Struct) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

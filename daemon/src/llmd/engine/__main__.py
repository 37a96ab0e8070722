"""Entry point of the engine process: ``python -m llmd.engine --fd N --cache DIRECTORY``."""

from __future__ import annotations

import argparse
import gc
import logging
import signal
import socket
import sys
from pathlib import Path

from llmd.engine.log_lines import log_stacks_on_signal, log_to_stderr
from llmd.host.blas_threads import keep_blas_single_threaded


def main() -> int:
    """Run the engine on an inherited socket."""
    parser = argparse.ArgumentParser(prog="llmd.engine")
    parser.add_argument("--fd", type=int, required=True, help="inherited end of a socket pair")
    parser.add_argument("--cache", type=Path, required=True, help="directory of probe results")
    parser.add_argument("--plugin-choices", type=Path, help="file of the plugins that the user disabled")
    arguments = parser.parse_args()
    log_to_stderr()
    log_stacks_on_signal()
    # The front uses the same cache and has already logged its warnings.
    logging.getLogger("llmd.host.cache").setLevel(logging.ERROR)
    # The front decides when the engine ends, but Ctrl-C in a terminal reaches both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_blas_single_threaded()
    gc.disable()  # until a model is loaded: imports create no garbage

    from llmd.engine.composition import loader_for
    from llmd.engine.process import serve

    with socket.socket(fileno=arguments.fd) as sock:
        return serve(sock, loader_for(arguments.cache, arguments.plugin_choices))


if __name__ == "__main__":
    sys.exit(main())

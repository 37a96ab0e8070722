"""The entry point ``llmd``: runs a command and turns its errors into a message and an exit code."""

from __future__ import annotations

import itertools
import logging
import sys
from collections.abc import Sequence

import click

from llmd.cli.group import TopGroup
from llmd.cli.logs import FORMATTERS, configure
from llmd.cli.subcommands import SUBCOMMANDS

log = logging.getLogger(__name__)

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
MIN_ADDRESS_SPACE = 256 << 20


def main() -> None:
    """Run ``llmd`` with the arguments of this process."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run ``llmd`` and return its exit code. Errors are printed on standard error."""
    from llmd.api.errors import LlmdError
    from llmd.api.out_of_memory import as_memory_error
    from llmd.cli.failures import refused_by_system, show_failure, show_usage

    configure(0)  # --help and --version are handled before -v
    as_json = "--json" in itertools.takewhile(lambda word: word != "--", arguments)
    try:
        result = llmd.main(list(arguments), prog_name="llmd", standalone_mode=False)
    except LlmdError as error:
        show_failure(error, as_json=as_json)
        return error.exit_code
    except click.UsageError as error:
        show_usage(error, as_json=as_json)
        return EXIT_USAGE
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except (MemoryError, ImportError, RuntimeError, OSError) as error:
        failure = as_memory_error(error) or (refused_by_system(error) if isinstance(error, OSError) else None)
        if failure is None:
            raise
        log.info("refused_by_system", exc_info=True)
        show_failure(failure, as_json=as_json)
        return failure.exit_code
    return result if isinstance(result, int) else 0


def show_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's
    """Print the version and exit (the callback of ``--version``)."""
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"llmd {version('llmd-daemon')}")
        ctx.exit()


@click.group(
    cls=TopGroup,
    subcommands=SUBCOMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Run `llmd COMMAND --help` for the options of a command.",
)
@click.option("-v", "--verbose", count=True, help="Log more to standard error; -vv logs everything.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Print the version.",
)
@click.option(
    "--log-format",
    type=click.Choice(list(FORMATTERS)),
    default="text",
    show_default=True,
    help="Format of log lines.",
)
def llmd(verbose: int, log_format: str) -> None:
    """Run language models on the devices of this machine."""
    configure(verbose, log_format)
    from llmd.api.out_of_memory import check_address_space

    check_address_space(MIN_ADDRESS_SPACE)


if __name__ == "__main__":
    main()

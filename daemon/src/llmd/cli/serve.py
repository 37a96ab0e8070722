"""``llmd serve``: runs the daemon in the foreground or in the background."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llmd.api.errors import ConfigError, NotFoundError
from llmd.api.out_of_memory import check_address_space
from llmd.cli.background import failure_told, start_daemon
from llmd.cli.completion.names import model_names
from llmd.cli.examples import examples
from llmd.cli.model_flag import ModelCommand
from llmd.cli.plugins.notices import repair_interrupted
from llmd.cli.serving_flags import listen_options, typed_addresses
from llmd.cli.setting_option import setting_option
from llmd.cli.settings import build_settings, serving_options, warn_of_unknown
from llmd.host.blas_threads import keep_blas_single_threaded

if TYPE_CHECKING:
    from llmd.config import Settings
    from llmd.registry.store import Store

MIN_ADDRESS_SPACE = 512 << 20


@click.command(
    cls=ModelCommand,
    epilog=examples(
        "llmd serve guide", "llmd serve ~/models/llama --addr 127.0.0.1:9000 --alias mine --max-ctx 8192"
    ),
)
@click.argument("models", nargs=-1, metavar="[MODEL]…", shell_complete=model_names)
@setting_option(
    "--alias",
    setting="alias",
    multiple=True,
    metavar="NAME[=MODEL]",
    help="Another name for a model; * matches any text; repeatable.",
)
@setting_option(
    "--lora",
    setting="lora",
    multiple=True,
    metavar="NAME=DIR",
    help="A LoRA adapter of the model, which requests choose as model NAME; repeatable.",
)
@click.option("--detach", is_flag=True, help="Run in the background; return when the daemon is ready.")
@click.option(
    "--exit-on-eof",
    is_flag=True,
    help="Exit when standard input ends; for programs that start a daemon of their own.",
)
@listen_options
@serving_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    models: tuple[str, ...],
    detach: bool,
    exit_on_eof: bool,
    host: str | None,
    port: int | None,
    addr: tuple[str, ...],
    config_file: Path | None,
    **flags: Any,
) -> None:
    """Serve models over HTTP and a Unix socket.

    MODEL is `guide`, a name that `llmd list` shows, a directory, or a GGUF file. Other models that `llmd
    list` shows are loaded when a request names them. When the daemon is ready, it prints one line with its
    addresses. On SIGTERM or Ctrl-C it lets running answers finish and exits with 0; a second Ctrl-C ends it
    at once.
    """
    if detach and exit_on_eof:
        raise click.UsageError("--detach leaves the daemon without standard input: drop --exit-on-eof")
    typed = {"addr": typed_addresses(addr, host, port), "load": models, **flags}
    if detach:
        click.echo(_detached(ctx, build_settings(config_file, **typed)))
        return
    with failure_told():
        settings = build_settings(config_file, **typed)
        repair_interrupted()
        with ended_by_signals():
            serve(
                settings,
                read_again=lambda: build_settings(config_file, **typed),
                exit_on_eof=exit_on_eof,
                verbosity=ctx.find_root().params.get("verbose", 0),
            )


def _detached(ctx: click.Context, settings: Settings) -> str:
    """Start the daemon in the background with the flags of this command; return its line."""
    warn_of_unknown(settings)
    root = ctx.find_root().params
    logged = ["--verbose"] * root.get("verbose", 0) + ["--log-format", root.get("log_format", "text")]
    return start_daemon(settings.directories, [*logged, "serve", *typed_arguments(ctx, without="detach")])


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Exit with 0 on SIGTERM and Ctrl-C even before the daemon handles them: nothing is being served yet."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        yield


def serve(
    settings: Settings,
    *,
    read_again: Callable[[], Settings] | None = None,
    exit_on_eof: bool = False,
    verbosity: int = 0,
) -> None:
    """Run the daemon in this process. ``read_again`` reads the settings again, for a reload.

    With ``exit_on_eof``, the daemon ends when standard input does.

    Raises:
        NotFoundError: there is no such model.
        MemoryBudgetError: the address space limit of this process is too low.
    """
    import asyncio

    from llmd.cli.taken_address import explained_conflicts

    check_address_space(MIN_ADDRESS_SPACE)
    keep_blas_single_threaded()
    # Objects made at startup stay alive; collecting garbage among them would take an eighth of the startup
    # time.
    # The daemon enables collection once it serves.
    gc.disable()
    try:
        read = read_again or (lambda: settings)
        with explained_conflicts(settings):
            asyncio.run(_serve(settings, read, verbosity, exit_on_eof=exit_on_eof))
    finally:
        gc.enable()


async def _serve(
    settings: Settings,
    read_again: Callable[[], Settings],
    verbosity: int,
    *,
    exit_on_eof: bool,
) -> None:
    from llmd.cli.logs import log_as_daemon, set_level
    from llmd.config.log_place import log_place
    from llmd.config.service_manager import take_service_manager
    from llmd.server.engines.engine_starter import EngineStarter

    place = log_place(os.environ, settings.directories.log)
    log_as_daemon(place)
    set_level(verbosity, settings.config.server.log_level)
    manager = take_service_manager(os.environ, os.getpid())
    keeps_spare = settings.config.server.models.spare_engine
    starter = EngineStarter.of(settings, keeps_spare=keeps_spare, watchdog_s=manager.watchdog_s)
    async with starter as engines:
        # Imported here, while the engine process runs its own imports.
        from llmd.cli.composition import build_benchmarks, build_cache, build_host, build_store
        from llmd.config.adapter_settings import with_adapters
        from llmd.server.daemon import Daemon, run_until_signal
        from llmd.server.input_end import end_with_input
        from llmd.server.models.adapter_model import adapter_models, check_names
        from llmd.server.reloader import Inputs

        store = build_store(settings.directories)
        cache = build_cache()

        def inputs(settings: Settings) -> Inputs:
            names = kept_models(settings, store)
            aliases = read_aliases(settings.config.server.models.alias, tuple(names), store)
            settings = with_adapters(settings, [engine_name(name, store) for name in names])
            adapters = adapter_models(settings)
            check_names(adapters, {*store.names(), *names, *aliases})
            return Inputs(settings, aliases, build_host(cache), tuple(names.values()))

        first = inputs(settings)
        daemon = Daemon(
            first.settings,
            host=first.host,
            store=store,
            models=first.models,
            aliases=first.aliases,
            benchmarks=build_benchmarks(cache),
            engines=engines,
            manager=manager,
            read_again=lambda: inputs(read_again()),
            use_log_level=lambda level: set_level(verbosity, level),
            log=place,
        )
        with end_with_input(daemon.shut_down) if exit_on_eof else nullcontext():
            await run_until_signal(daemon, lambda serving: click.echo(str(serving)))


def kept_models(settings: Settings, store: Store) -> dict[str, str]:
    """Return what the command or the setting ``load`` names, like `named_models`.

    Raises:
        NotFoundError: there is no such model; the message says where the setting is.
    """
    origin = settings.origins["server.load"]
    try:
        return named_models(origin.value, store)
    except NotFoundError as error:
        if not origin.source.startswith("--"):  # else it was typed as an argument
            error.message = f"server.load from {origin.place}: {error.message}"
        raise


def named_models(models: Sequence[str], store: Store) -> dict[str, str]:
    """Return what to load by served name: a stored or derived name, or the path of a directory or GGUF file.

    A directory is served under its own name, or under its path if another model has that name.

    Raises:
        NotFoundError: there is no such model.
    """
    taken = stored = store.directories()
    named = {}
    for model in (store.find(name, allow_path=True) for name in models):
        if model.base:
            named[model.name] = model.name
            continue
        path = str(model.directory)
        name = model.name if taken.get(model.name, model.directory) == model.directory else path
        taken = {**taken, name: model.directory}
        named[name] = name if name in stored else path
    return named


def engine_name(model: str, store: Store) -> str:
    """Return the served name of the model whose engine answers: a derived model has that of its base."""
    derived = store.derived.find(model)
    return model if derived is None else derived[1].base


def read_aliases(texts: Sequence[str], served: Sequence[str], store: Store) -> dict[str, str]:
    """Return served names by alias; ``NAME`` without a model is an alias of the only model.

    Raises:
        RequestError: an alias is not a valid model name.
        ConfigError: an alias does not name its model, but several (or none) are served.
        NotFoundError: an alias names a model that does not exist.
    """
    from llmd.registry.names import check_alias

    aliases = {}
    for text in texts:
        name, given, model = text.partition("=")
        if not given and len(served) != 1:
            raise ConfigError(
                f"--alias {text} does not say which of {len(served)} models it is for",
                hint=f"write --alias {name}=MODEL",
            )
        aliases[check_alias(name)] = _target(model, served, store) if given else served[0]
    return aliases


def _target(model: str, served: Sequence[str], store: Store) -> str:
    """Resolve the model of an alias: a served model by name or path, or a stored one by name."""
    from llmd.models.model_path import resolved

    path = resolved(Path(model))
    for name in (model, str(path), path.name):
        if name in served:
            return name
    return store.find(model, allow_path=False).name


def typed_arguments(ctx: click.Context, *, without: str) -> list[str]:
    """Return the command's typed arguments, except the flag ``without``, for another process."""
    flags: list[str] = []
    words: list[str] = []
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name == without or ctx.get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE:
            continue
        value = ctx.params[name]
        values = value if isinstance(value, tuple) else (value,)
        if isinstance(parameter, click.Argument):
            words += map(str, values)
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            flags.append(parameter.opts[-1])
        else:
            flags += [word for one in values for word in (parameter.opts[-1], str(one))]
    return [*flags, "--", *words]

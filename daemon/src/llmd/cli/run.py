"""``llmd run``: one prompt, one answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any

import click

from llmd.cli.answer_writer import SilentWriter, answer_writer, show_note
from llmd.cli.completion.names import model_names
from llmd.cli.connection import connect, named
from llmd.cli.examples import examples
from llmd.cli.generation_options import generation_options, given
from llmd.cli.loading_progress import with_loading_progress
from llmd.cli.model_flag import ModelCommand
from llmd.cli.output import show_json
from llmd.cli.settings import JSON, client_options
from llmd.cli.streaming import INTERRUPTED, Printed, cut_note, print_answer, stats_line
from llmd.cli.typed_text import keep_bytes, valid

EXIT_INTERRUPTED = 130
STDIN = "-"


@click.command(
    cls=ModelCommand,
    epilog=examples(
        'llmd run guide "How do I see my devices?"',
        'git diff | llmd run guide "Write a commit message." --temp 0',
    ),
)
@click.argument("model", shell_complete=model_names)
@click.argument("prompt", required=False)
@generation_options
@click.option("--stats", is_flag=True, help="Print token counts and speed on standard error.")
@click.option("--no-start", is_flag=True, help="Do not start a daemon; exit with code 6 if none is running.")
@JSON
@client_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    model: str,
    prompt: str | None,
    system: str | None,
    stats: bool,
    no_start: bool,
    as_json: bool,
    host: str | None,
    timeout_s: float | None,
    config_file: Path | None,
    **sampling: Any,
) -> None:
    """Answer one prompt and exit.

    MODEL is `guide`, a name that `llmd list` shows, a directory, or a GGUF file. Piped standard input is
    appended to PROMPT; without PROMPT, or if PROMPT is `-`, standard input is the prompt. On a terminal
    without a PROMPT this is `llmd chat`. If no daemon is running, one is started and left running.
    """
    text = whole_prompt(prompt, sys.stdin)
    if text is None:
        if as_json:
            raise click.UsageError("--json needs a prompt")
        return _chat(ctx, model)
    client = connect(host, timeout_s, config_file, start=not no_start)
    messages = messages_of(system, text)
    answers = client.stream_chat(messages, model=named(model), **given(sampling))
    writer = SilentWriter() if as_json else answer_writer()
    printed = print_answer(with_loading_progress(client, answers), writer)
    if as_json:
        show_json(members_of(model, printed))
    elif note := cut_note(printed, sampling["max_tokens"]):
        show_note(note)
    if stats:
        click.echo(stats_line(printed), err=True)
    if printed.finish == INTERRUPTED:
        ctx.exit(EXIT_INTERRUPTED)
    return None


def whole_prompt(prompt: str | None, stdin: IO[str] | None) -> str | None:
    """Return the prompt with standard input (which may be closed) appended; None on a terminal without a
    prompt.

    Raises:
        click.UsageError: there is no prompt, and standard input is empty.
    """
    words = None if prompt in (STDIN, None) else valid(prompt)
    if stdin is not None and stdin.isatty() and prompt != STDIN:
        return words
    piped = "" if stdin is None else valid(_read(stdin)).strip()
    text = "\n\n".join(part for part in (words, piped) if part)
    if not text:
        raise click.UsageError("there is no prompt: give one as PROMPT or on standard input")
    return text


def _read(stdin: IO[str]) -> str:
    keep_bytes(stdin)
    return stdin.read()


def messages_of(system: str | None, prompt: str) -> list[dict[str, str]]:
    """Return a conversation with one question."""
    instructions = [{"role": "system", "content": system}] if system else []
    return [*instructions, {"role": "user", "content": prompt}]


def members_of(model: str, printed: Printed) -> dict[str, Any]:
    """Return an answer for ``--json``; times are in seconds."""
    return {
        "model": model,
        "text": printed.text,
        "finish": printed.finish,
        "usage": {
            "prompt_tokens": printed.prompt_tokens,
            "completion_tokens": printed.completion_tokens,
        },
        "first_s": printed.first_s,
        "total_s": printed.total_s,
        "tokens_per_s": printed.tokens_per_s,
    }


def _chat(ctx: click.Context, model: str) -> None:
    """Run ``llmd chat`` instead, with the options that both commands have."""
    from llmd.cli.chat import command as chat

    known = {parameter.name for parameter in chat.params}
    ctx.invoke(
        chat, **{name: value for name, value in ctx.params.items() if name in known} | {"model": model}
    )

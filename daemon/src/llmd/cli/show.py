"""``llmd show MODEL``: details of a model, without loading it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llmd.api.byte_size import format_bytes
from llmd.cli.completion.names import model_names
from llmd.cli.composition import build_store
from llmd.cli.examples import examples
from llmd.cli.memory_fit import fit_fields, fit_lines
from llmd.cli.model_flag import ModelCommand
from llmd.cli.output import aligned, show_json
from llmd.cli.settings import CONFIG, JSON
from llmd.cli.structure_lines import read_structure, structure_lines
from llmd.cli.this_machine import local_settings

if TYPE_CHECKING:
    from llmd.registry.derived import DerivedModel
    from llmd.registry.stored_model import StoredModel


@click.command(cls=ModelCommand, epilog=examples("llmd show guide", "llmd show guide --template"))
@click.argument("model", shell_complete=model_names)
@click.option("--template", is_flag=True, help="Print only the chat template.")
@click.option("--tokens", is_flag=True, help="Print the vocabulary size and the special tokens.")
@JSON
@CONFIG
def command(*, model: str, template: bool, tokens: bool, as_json: bool, config_file: Path | None) -> None:
    """Show details of a model: architecture, size, context length, files, and the memory that it needs.

    MODEL is a name that `llmd list` shows, a directory, or a GGUF file. Of a derived model, its base and what
    it changes are shown, too.
    """
    if template and tokens:
        raise click.UsageError("--template and --tokens cannot be combined")
    settings = local_settings(config_file, "models")
    store = build_store(settings.directories)
    stored = store.find(model, allow_path=True)
    derived = store.record_of(stored)
    if template:
        text = derived.template if derived and derived.template else template_text(stored.directory)
        show_json({"template": text}) if as_json else click.echo(text)
    elif tokens:
        facts = token_facts(stored.directory)
        show_json({"tokens": facts}) if as_json else click.echo(aligned(token_lines(facts)))
    elif as_json:
        able, files = capabilities_of(stored.directory), file_names(stored.directory)
        memory = fit_fields(stored.directory, stored.base or stored.name, settings)
        about = {"structure": read_structure(stored.directory), "memory": memory}
        changes = {} if derived is None else {"derived": derived}
        show_json({"model": stored, "capabilities": able, "files": files, **about, **changes})
    else:
        fit = [] if stored.reason else fit_lines(stored.directory, stored.base or stored.name, settings)
        layers = [] if stored.reason else structure_lines(read_structure(stored.directory))
        click.echo(aligned([*lines_of(stored), *layers, *fit, *derived_lines(derived)]))


def lines_of(model: StoredModel) -> list[list[str]]:
    """Return a model's details as titles and values."""
    return [
        ["name", model.name],
        *([["derived from", model.base]] if model.base else []),
        ["directory", str(model.directory)],
        *([["source", f"{model.source}@{model.commit}"]] if model.source else []),
        ["architecture", model.architecture or "unknown"],
        ["parameters", f"{model.num_parameters:,}"],
        ["weights", weights_of(model)],
        ["capabilities", ", ".join(capabilities_of(model.directory))],
        ["context", f"{model.context_len} tokens" if model.context_len else "not stated"],
        ["files", ", ".join(file_names(model.directory))],
        ["modified", model.modified.isoformat(timespec="seconds")],
        ["state", model.reason or "ok"],
    ]


def derived_lines(record: DerivedModel | None) -> list[list[str]]:
    """Return what a derived model changes as titles and values; nothing for other models."""
    if record is None:
        return []
    parameters = [(name, value) for name, values in record.parameters.items() for value in one_or_all(values)]
    return [
        *([["system prompt", one_line(record.system)]] if record.system else []),
        *(["message", one_line(f"{one['role']}: {one.get('content', '')}")] for one in record.messages),
        *(["parameter", one_line(f"{name} {value}")] for name, value in parameters),
        *([["template", "its own; --template prints it"]] if record.template else []),
        *([["license", one_line(record.license)]] if record.license else []),
    ]


def one_or_all(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]


def one_line(text: str) -> str:
    """Return a text on one line, without control characters: a file must not control the terminal."""
    from llmd.cli.answer_writer import CONTROLS

    return " ".join(text.translate(CONTROLS).split())


def weights_of(model: StoredModel) -> str:
    """Format the size of the weights, the format of most of them, the file format, and bits per parameter."""
    bits = f", {model.bits_per_weight:.2f} bits each" if model.num_parameters else ""
    files = f" ({model.file_format})" if model.file_format else ""
    return f"{format_bytes(model.size_bytes)} {model.format}{files}{bits}".rstrip()


def file_names(directory: Path) -> list[str]:
    from llmd.models.model_path import files_of

    return [path.name for path in files_of(directory)]


def capabilities_of(directory: Path) -> list[str]:
    """Return the capabilities of a model, same as `/api/show`."""
    from llmd.chat.capabilities import capability_names, read_capabilities

    return capability_names(read_capabilities(directory))


def template_text(directory: Path) -> str:
    """Return the chat template.

    Raises:
        TemplateError: the model has none.
    """
    from llmd.chat.templates.template_files import load_chat_template
    from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer

    return load_chat_template(directory, load_tokenizer(directory)).source(with_tools=False)


def token_facts(directory: Path) -> dict[str, Any]:
    """Return the vocabulary size, the begin and stop tokens, and the special tokens by text.

    Raises:
        TokenizerError: the tokenizer cannot be read.
    """
    from llmd.chat.answers.stop_tokens import stop_token_ids
    from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer

    tokenizer = load_tokenizer(directory)
    return {
        "vocab_size": tokenizer.vocab_size,
        "bos_id": tokenizer.bos_id,
        "stop_ids": stop_token_ids(directory, tokenizer),
        "special": {token.text: token.token_id for token in tokenizer.vocabulary.specials},
    }


def token_lines(facts: dict[str, Any]) -> list[list[str]]:
    """Return the facts of `token_facts` as titles and values."""
    return [
        ["vocabulary", f"{facts['vocab_size']} tokens"],
        ["begin of text", "none" if facts["bos_id"] is None else str(facts["bos_id"])],
        ["end of answer", ", ".join(map(str, facts["stop_ids"])) or "none"],
        *([text, str(token_id)] for text, token_id in facts["special"].items()),
    ]

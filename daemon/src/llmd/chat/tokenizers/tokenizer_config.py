"""Read ``tokenizer_config.json`` and its older companion files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from llmd.api.errors import TokenizerError
from llmd.chat.json_file import convert_json, read_json_object

_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")

# These classes add BOS by default; for others tokenizer.json decides.
_CLASSES_WITH_BOS = frozenset({"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer"})


class AddedToken(msgspec.Struct, frozen=True):
    """An entry of ``added_tokens_decoder``: a token that is not one of the model's own pieces."""

    content: str
    special: bool = True
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


class TokenizerConfig(msgspec.Struct, frozen=True):
    """The merged content of the files. None: the files leave the choice to the kind of tokenizer."""

    tokenizer_class: str = ""
    named: dict[str, str | list[str]] = {}
    """Texts of ``bos_token`` etc. and the list ``additional_special_tokens``: variables of templates."""
    added: dict[int, AddedToken] = {}
    """By token id."""
    add_bos: bool | None = None
    add_eos: bool = False
    """EOS ends a complete text, even if the tokenizer's own file does not say so."""
    add_prefix_space: bool | None = None
    legacy: bool | None = None
    lower_cases: bool = True
    """WordPiece lower-cases text first."""
    strips_accents: bool | None = None
    """WordPiece strips accents first; None: if it lower-cases."""
    splits_chinese: bool = True
    """WordPiece splits Chinese characters first."""

    def name(self, key: str) -> str | None:
        """Return the text of ``bos_token``, ``eos_token`` etc.; None if there is none."""
        value = self.named.get(key)
        return value if isinstance(value, str) else None

    @property
    def special_texts(self) -> frozenset[str]:
        named = [
            text for value in self.named.values() for text in ([value] if isinstance(value, str) else value)
        ]
        return frozenset(named) | {token.content for token in self.added.values() if token.special}


class _ConfigFile(msgspec.Struct, frozen=True):
    tokenizer_class: str | None = None
    added_tokens_decoder: dict[int, AddedToken] = {}
    add_bos_token: bool | None = None
    add_eos_token: bool | None = None
    add_prefix_space: bool | None = None
    legacy: bool | None = None
    do_lower_case: bool = True
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool = True


def read_tokenizer_config(directory: Path) -> TokenizerConfig:
    """Read the configuration of the tokenizer in ``directory``; missing files count as empty.

    Raises:
        TokenizerError: a file cannot be read or does not have the expected form.
    """
    path = directory / "tokenizer_config.json"
    values = read_json_object(path, error=TokenizerError)
    config = convert_json(path, values, _ConfigFile, error=TokenizerError)
    map_path = directory / "special_tokens_map.json"
    named = _named(map_path, read_json_object(map_path, error=TokenizerError)) | _named(path, values)
    tokenizer_class = (config.tokenizer_class or "").removesuffix("Fast")
    return TokenizerConfig(
        tokenizer_class=tokenizer_class,
        named=named,
        added=_older_added_tokens(directory, named) | config.added_tokens_decoder,
        add_bos=True
        if config.add_bos_token is None and tokenizer_class in _CLASSES_WITH_BOS
        else config.add_bos_token,
        add_eos=bool(config.add_eos_token),
        add_prefix_space=config.add_prefix_space,
        legacy=config.legacy,
        lower_cases=config.do_lower_case,
        strips_accents=config.strip_accents,
        splits_chinese=config.tokenize_chinese_chars,
    )


def _named(path: Path, values: dict[str, Any]) -> dict[str, str | list[str]]:
    named: dict[str, str | list[str]] = {
        key: _text(path, key, values[key]) for key in _NAMES if values.get(key) is not None
    }
    # transformers 4 has the list in additional_special_tokens and an object of further roles in
    # extra_special_tokens; transformers 5 has the list in extra_special_tokens and the roles in
    # model_specific_special_tokens.
    listed = values.get("additional_special_tokens")
    for key in ("extra_special_tokens", "model_specific_special_tokens"):
        extra = values.get(key)
        if isinstance(extra, dict):
            named |= {role: _text(path, role, value) for role, value in extra.items()}
        else:
            listed = listed or extra
    listed = listed or []
    if not isinstance(listed, list):
        raise TokenizerError(f"{path}: additional_special_tokens is not a list", hint="correct the file")
    if listed:
        named["additional_special_tokens"] = [
            _text(path, "additional_special_tokens", item) for item in listed
        ]
    return named


def _text(path: Path, key: str, value: Any) -> str:
    """Return the text of a token, given as a string or as an object with ``content``."""
    text = value.get("content") if isinstance(value, dict) else value
    if not isinstance(text, str):
        raise TokenizerError(f"{path}: {key} is {value!r}, not a token's text", hint="correct the file")
    return text


def _older_added_tokens(directory: Path, named: dict[str, str | list[str]]) -> dict[int, AddedToken]:
    path = directory / "added_tokens.json"
    ids = convert_json(
        path, read_json_object(path, error=TokenizerError), dict[str, int], error=TokenizerError
    )
    if len(set(ids.values())) != len(ids):
        raise TokenizerError(f"{path} gives one id to several tokens", hint="copy the model directory again")
    special = TokenizerConfig(named=named).special_texts
    return {token_id: AddedToken(text, special=text in special) for text, token_id in ids.items()}

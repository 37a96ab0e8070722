"""Names of models in the store and of repositories on a hub."""

from __future__ import annotations

import re
import reprlib

import msgspec

from llmd.api.errors import RequestError
from llmd.registry.short_names import LATEST, repository_of

DERIVED = ".derived"
"""Folder of derived models, below that of the models."""

MAIN = "main"
HUB_PREFIXES = ("https://huggingface.co/", "huggingface.co/", "https://hf.co/", "hf.co/")
_WORD = r"[A-Za-z0-9](?:[\w.-]{0,94}[\w-])?"
_REPO = re.compile(rf"(?:{_WORD}/)?{_WORD}", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)*", re.ASCII)
_QUANT = re.compile(r"[A-Za-z0-9][\w.-]{0,59}", re.ASCII)
_LOCAL = re.compile(rf"(?:{_WORD}/)?{_WORD}(?:@[\w.-]{{1,100}})?(?::{_QUANT.pattern})?", re.ASCII)
MAX_REVISION_LEN = 100
MAX_NAME_LEN = 200
"""Room for an organisation, a repository of 96 characters, a commit and a quantisation in one file name."""
NAME_RULE = (
    "a name is NAME or ORG/NAME, optionally followed by :TAG; each part begins with a letter or a digit, "
    "continues with letters, digits, '.', '_' and '-', and has at most 96 characters, the tag at most 60"
)


class HubName(msgspec.Struct, frozen=True):
    """A repository on a hub, with a revision and a quantisation if they were given."""

    repo: str
    revision: str | None = None
    """Branch, tag or commit; None: the main branch."""
    quant: str | None = None
    """Quantisation of the GGUF file to choose, in capitals."""

    @property
    def local(self) -> str:
        """The model's name in the store; includes the revision and quantisation if they were given."""
        return self._with(self.revision.replace("/", "--") if self.revision else None)

    def __str__(self) -> str:
        return self._with(self.revision)

    def _with(self, revision: str | None) -> str:
        at = f"@{revision}" if revision else ""
        return f"{self.repo}{at}:{self.quant}" if self.quant else f"{self.repo}{at}"


def parse_hub_name(text: str) -> HubName:
    """Parse ``ORG/NAME`` or ``ORG/NAME@REVISION``, either with ``:QUANT``, or a short name.

    A prefix such as ``hf.co/`` and the suffix ``:latest`` are ignored.

    Raises:
        RequestError: it has another form, or names another hub: the hub is chosen by a setting.
    """
    stripped = repository_of(text.strip())
    for prefix in HUB_PREFIXES:
        stripped = stripped.removeprefix(prefix)
    _check_len(stripped, "model")
    place, colon, quant = stripped.removesuffix(LATEST).partition(":")
    repo, at, revision = place.partition("@")
    if not _REPO.fullmatch(repo) or ".." in repo:
        raise _malformed(
            text, "name a model of a hub as ORG/NAME, or as ORG/NAME@REVISION for one of its versions"
        )
    if colon and not _QUANT.fullmatch(quant):
        raise _malformed(text, "after the colon, give the quantisation of a GGUF file, such as Q4_K_M")
    quantized = quant.upper() or None
    if not at:
        return HubName(repo, quant=quantized)
    if not _REVISION.fullmatch(revision) or ".." in revision or len(revision) > MAX_REVISION_LEN:
        raise _malformed(text, "after the @, give a branch, a tag or a commit")
    name = HubName(repo, None if revision == MAIN else revision, quantized)
    _check_len(name.local, "model")
    return name


def check_model_name(text: str, *, param: str = "model") -> str:
    """Check the name of a model and return it without ``:latest``.

    Every command and route that names a model calls this. ``param`` is the request field with the name.

    Raises:
        RequestError: the name is not valid.
    """
    return check_name(text, "model", param=param)


def check_name(text: str, kind: str, *, param: str | None = None) -> str:
    """Check a name by the rule for model names and return it without ``:latest``.

    Other things that users name follow the same rule; ``kind`` says what the name is for.

    Raises:
        RequestError: the name is not valid.
    """
    name = text.removesuffix(LATEST)
    _check_len(text, param, kind)
    if not _is_name(name):
        raise _malformed(text, NAME_RULE, param, kind)
    return name


def check_alias(text: str) -> str:
    """Check an alias, a model name in which ``*`` stands for any text; return it without ``:latest``.

    Raises:
        RequestError: the alias is not valid.
    """
    name = text.removesuffix(LATEST)
    _check_len(text, "alias")
    if not _is_name(name.replace("*", "x")):
        raise _malformed(text, f"{NAME_RULE}; in an alias, * stands for any text", "alias")
    return name


def _is_name(text: str) -> bool:
    return _LOCAL.fullmatch(text) is not None and ".." not in text


def _check_len(text: str, param: str | None, kind: str = "model") -> None:
    if len(text) > MAX_NAME_LEN:
        raise RequestError(
            f"the {kind} name {reprlib.repr(text)} has {len(text)} characters",
            param=param,
            hint=f"a {kind} name has at most {MAX_NAME_LEN}",
        )


def _malformed(text: str, hint: str, param: str | None = "model", kind: str = "model") -> RequestError:
    return RequestError(f"{reprlib.repr(text)} is not a valid {kind} name", param=param, hint=hint)

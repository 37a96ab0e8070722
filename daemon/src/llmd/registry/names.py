"""Names: of models in the store, and of what a hub has."""

from __future__ import annotations

import re
import reprlib

import msgspec

from llmd.api.errors import RequestError

LATEST = ":latest"
MAIN = "main"
HUB_PREFIXES = ("https://huggingface.co/", "huggingface.co/", "https://hf.co/", "hf.co/")
_WORD = r"[A-Za-z0-9](?:[\w.-]{0,94}[\w-])?"
_REPO = re.compile(rf"(?:{_WORD}/)?{_WORD}", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)*", re.ASCII)
_QUANT = re.compile(r"[A-Za-z0-9][\w.-]{0,59}", re.ASCII)
_LOCAL = re.compile(rf"(?:{_WORD}/)?{_WORD}(?:@[\w.-]{{1,100}})?(?::{_QUANT.pattern})?", re.ASCII)
MAX_REVISION_LEN = 100
MAX_NAME_LEN = 200
"""Room for an organisation, a repository of 96 characters, a commit and a quantisation. Longer names are no file names."""
NAME_RULE = (
    "a name is NAME or ORG/NAME, optionally followed by :TAG; each part begins with a letter or a digit, goes on with "
    "letters, digits, '.', '_' and '-', and has at most 96 characters, the tag at most 60"
)


class HubName(msgspec.Struct, frozen=True):
    """A repository of a hub, and the branch, tag or commit that is meant; ``revision`` None is the main branch.

    ``quant`` asks for a GGUF file of that quantisation, in capitals.
    """

    repo: str
    revision: str | None = None
    quant: str | None = None

    @property
    def local(self) -> str:
        """What the model is called in the store. A revision or quantisation that was asked for is part of its name."""
        return self._with(self.revision.replace("/", "--") if self.revision else None)

    def __str__(self) -> str:
        return self._with(self.revision)

    def _with(self, revision: str | None) -> str:
        at = f"@{revision}" if revision else ""
        return f"{self.repo}{at}:{self.quant}" if self.quant else f"{self.repo}{at}"


def parse_hub_name(text: str) -> HubName:
    """Read ``ORG/NAME``, ``ORG/NAME@REVISION``, and either with ``:QUANT``; ``hf.co/`` may stand before, ``:latest`` behind it.

    Raises:
        RequestError: it has another form, or names a hub of its own: which hub is asked is a setting.
    """
    stripped = text.strip()
    for prefix in HUB_PREFIXES:
        stripped = stripped.removeprefix(prefix)
    _check_len(stripped, "model")
    place, colon, quant = stripped.removesuffix(LATEST).partition(":")
    repo, at, revision = place.partition("@")
    if not _REPO.fullmatch(repo) or ".." in repo:
        raise _malformed(
            text, "a model of a hub is named ORG/NAME, or ORG/NAME@REVISION for one of its versions"
        )
    if colon and not _QUANT.fullmatch(quant):
        raise _malformed(text, "behind the colon stands a quantisation of a GGUF file, such as Q4_K_M")
    quantized = quant.upper() or None
    if not at:
        return HubName(repo, quant=quantized)
    if not _REVISION.fullmatch(revision) or ".." in revision or len(revision) > MAX_REVISION_LEN:
        raise _malformed(text, "behind the @ stands a branch, a tag or a commit")
    name = HubName(repo, None if revision == MAIN else revision, quantized)
    _check_len(name.local, "model")
    return name


def check_model_name(text: str, *, param: str = "model") -> str:
    """Return a name that a model of the store may have, without ``:latest``.

    Every command and route that gives a model a name calls this. ``param`` is the field that holds the name.

    Raises:
        RequestError: no model may have that name.
    """
    return check_name(text, "model", param=param)


def check_name(text: str, kind: str, *, param: str | None = None) -> str:
    """Return a name by the rule of model names, which holds for other things of the user as well, without ``:latest``.

    ``kind`` is what the name is for.

    Raises:
        RequestError: nothing may have that name.
    """
    name = text.removesuffix(LATEST)
    _check_len(text, param, kind)
    if not _is_name(name):
        raise _malformed(text, NAME_RULE, param, kind)
    return name


def check_alias(text: str) -> str:
    """Return an alias without ``:latest``: a model name in which ``*`` may stand for any text.

    Raises:
        RequestError: no model may have that name.
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

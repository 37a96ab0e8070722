"""Guards readers of tool calls, which plugins provide: if one raises an error, the answer goes on as text."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from llmd.api.parsing import CallFormat, CallReader, Tool
from llmd.api.parts import AnswerPart, Text

logger = logging.getLogger(__name__)

OnFailure = Callable[[str, Exception], None]
"""Called with the name of a parser that raised an error."""


def guarded(form: CallFormat, parser: str, on_failure: OnFailure) -> CallFormat:
    """Return the format with readers that never raise. After the first error, no answer is parsed."""
    return msgspec.structs.replace(form, open=_Opener(form, parser, on_failure))


class _Opener:
    """Opens readers of one parser until it fails."""

    def __init__(self, form: CallFormat, parser: str, on_failure: OnFailure) -> None:
        self._form = form
        self._parser = parser
        self._on_failure = on_failure
        self._has_failed = False

    def __call__(self, tools: Sequence[Tool]) -> CallReader:
        if self._has_failed:
            return _GuardedReader(None, self._fail)
        try:
            return _GuardedReader(self._form.open(tools), self._fail)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            self._fail(error)
            return _GuardedReader(None, self._fail)

    def _fail(self, error: Exception) -> None:
        logger.error("parser_failed", exc_info=error, extra={"parser": self._parser})
        self._has_failed = True
        self._on_failure(self._parser, error)


class _GuardedReader:
    """Reads one answer; without a reader, or once it has failed, everything is text."""

    def __init__(self, reader: CallReader | None, fail: Callable[[Exception], None]) -> None:
        self._reader = reader
        self._fail = fail
        self._kept = ""

    @property
    def held(self) -> int:
        return len(self._kept)

    def feed(self, text: str) -> Sequence[AnswerPart]:
        self._kept += text
        try:
            if self._reader is not None:
                parts = list(self._reader.feed(text))
                held = self._reader.held
                self._kept = self._kept[-held:] if held else ""
                return parts
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            self._give_up(error)
        return self._rest()

    def finish(self) -> Sequence[AnswerPart]:
        try:
            if self._reader is not None:
                return list(self._reader.finish())
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            self._give_up(error)
        return self._rest()

    def _give_up(self, error: Exception) -> None:
        self._reader = None
        self._fail(error)

    def _rest(self) -> list[AnswerPart]:
        """Return the text that no part covers yet."""
        rest, self._kept = self._kept, ""
        return [Text(rest)] if rest else []

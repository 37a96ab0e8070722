"""The errors of llmd. Each says what happened (``message``) and what to do next (``hint``).

LlmdError
├── ConfigError              a setting has an unusable value; the message says where it was set
├── NotFoundError            no such model, plugin, device or daemon object
├── NotPermittedError        the operating system does not let this user do it
├── ModelError               a model directory cannot be served
│   ├── CheckpointError      a weight file is missing, truncated or inconsistent
│   ├── UnsupportedModelError  no installed plugin can run this architecture or op
│   ├── TokenizerError       tokenizer files are missing or inconsistent
│   └── TemplateError        the chat template is broken, too slow or too large
├── RequestError             a request must be refused; ``param`` names the field
│   ├── ContextLengthError   prompt (and answer) do not fit the context window
│   └── GrammarError         a schema or grammar cannot be enforced; the message names the feature
├── MemoryBudgetError        weights or KV blocks do not fit the memory budget
├── DiskSpaceError           files do not fit on the disk
├── ConflictError            the object is in use, or the name is taken
├── HubError                 a model hub refused, was unreachable, or sent unexpected data
├── PluginError              a plugin failed to import, describe, probe or open
├── DeviceError              a device failed while in use
│   ├── DeviceLostError      devices are gone or hang; ``devices`` names them
│   └── DeviceMemoryError    a device ran out of memory during a step
├── LinkError                a transport could not connect or lost its peer
│   ├── LinkClosedError      the link or listener is closed
│   └── LinkTimeoutError     nothing happened on the link in time
├── EngineCrashedError       the engine process died and its requests could not be resumed
└── DaemonUnreachableError   no daemon answers at the address
"""

from __future__ import annotations

from pathlib import Path


class LlmdError(Exception):
    """Base class of all errors that llmd raises on purpose."""

    exit_code = 1
    """Exit status of the ``llmd`` command that fails with this error."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConfigError(LlmdError):
    """A setting has an unusable value; the message says where it was set."""

    exit_code = 2
    file: Path | None = None
    """The file that has the value; None if it is from no file."""
    line: int | None = None
    """Line of the file, from 1; None if it is from no file, or if the whole file is unusable."""
    setting: str = ""
    """Bare name of the setting, such as ``slots``, if the error is about one that is known."""


class NotFoundError(LlmdError):
    """There is no model, plugin, device or daemon object of this name."""

    exit_code = 3


class NotPermittedError(LlmdError):
    """The operating system does not let this user do it, such as write into a folder of another user."""

    exit_code = 4


class ModelError(LlmdError):
    """A model directory cannot be served."""


class CheckpointError(ModelError):
    """A weight file is missing, truncated or contradicts its header or the configuration.

    ``file`` and ``tensor`` name the cause; ``tensor`` is empty if it is the whole file.
    """

    def __init__(self, message: str, *, file: str, tensor: str = "", hint: str = "") -> None:
        place = f"{file}: {tensor}" if tensor else file
        super().__init__(f"{place}: {message}", hint=hint)
        self.file = file
        self.tensor = tensor


class UnsupportedModelError(ModelError):
    """No installed plugin runs this architecture, op or option."""


class TokenizerError(ModelError):
    """Tokenizer files are missing, unreadable or inconsistent with the model."""


class TemplateError(ModelError):
    """A chat template is broken, or exceeded its time or memory limit."""


class RequestError(LlmdError):
    """A request is invalid and must be refused; ``param`` names the field."""

    exit_code = 2

    def __init__(self, message: str, *, param: str | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.param = param


class ContextLengthError(RequestError):
    """The prompt does not fit the context window; both lengths are in tokens.

    ``longer_window`` says how to get a longer window; empty: the model has no longer one.
    """

    def __init__(
        self, prompt_len: int, context_len: int, *, param: str = "messages", longer_window: str = ""
    ) -> None:
        super().__init__(
            f"the prompt has {prompt_len} tokens, the context window holds {context_len}",
            param=param,
            hint=f"shorten the prompt, or {longer_window or 'use a model with a longer context'}",
        )
        self.prompt_len = prompt_len
        self.context_len = context_len


class GrammarError(RequestError):
    """A grammar is malformed, too large, or has a feature that cannot be enforced."""


class MemoryBudgetError(LlmdError):
    """Weights or KV blocks do not fit; the message shows the arithmetic."""

    exit_code = 5


class DiskSpaceError(LlmdError):
    """Files do not fit on the disk; the message shows the arithmetic."""

    exit_code = 5


class ConflictError(LlmdError):
    """The object is in use, or the name is taken."""

    exit_code = 9


class HubError(LlmdError):
    """A model hub refused, was unreachable, or sent unexpected data."""


class PluginError(LlmdError):
    """A plugin failed while it was imported, described, probed or opened."""


class DeviceError(LlmdError):
    """A device failed while a step ran on it."""


class DeviceLostError(DeviceError):
    """Devices are gone, or hang, and run nothing more; ``devices`` are their names."""

    def __init__(self, message: str, *, devices: tuple[str, ...], hint: str = "") -> None:
        super().__init__(f"{', '.join(devices)}: {message}", hint=hint)
        self.devices = devices


class DeviceMemoryError(DeviceError):
    """A device ran out of memory during a step; with a smaller KV pool it may run on."""


class LinkError(LlmdError):
    """A transport could not connect, or lost its peer."""


class LinkClosedError(LinkError):
    """The link or listener is closed."""


class LinkTimeoutError(LinkError):
    """Nothing was sent, received or accepted within the time limit."""

    exit_code = 7


class EngineCrashedError(LlmdError):
    """The engine process died and its requests could not be resumed."""


class DaemonUnreachableError(LlmdError):
    """No daemon answers at the address that was tried."""

    exit_code = 6

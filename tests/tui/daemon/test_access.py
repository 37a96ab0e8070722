from __future__ import annotations

from llmd.client_errors import EXIT_REFUSED
from llmd_tui.daemon.access import RefusedError


def test_a_refusal_ends_a_command_as_other_commands_do() -> None:
    refused = RefusedError("this API key is unknown", hint="list the valid ones")
    assert refused.exit_code == EXIT_REFUSED
    assert str(refused) == "this API key is unknown (list the valid ones)"
    assert not refused.may_chat

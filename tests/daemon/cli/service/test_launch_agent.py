from __future__ import annotations

import plistlib
from pathlib import Path

from llmd.cli.service.launch_agent import LaunchAgent, agent_path, bootout, bootstrap, inspect


def test_the_agent_starts_at_login_and_again_after_a_failure() -> None:
    agent = LaunchAgent(("/opt/llmd", "serve"), Path("/Users/ann/daemon.log"), {"HF_HOME": "/models"})
    read = plistlib.loads(agent.content())
    assert read["ProgramArguments"] == ["/opt/llmd", "serve"]
    assert (read["RunAtLoad"], read["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert (read["ProcessType"], read["Label"]) == ("Interactive", "llmd")
    assert read["StandardErrorPath"] == "/Users/ann/daemon.log"
    assert read["EnvironmentVariables"] == {"HF_HOME": "/models"}


def test_commands_are_about_the_agent_of_the_user() -> None:
    path = agent_path(Path("/Users/ann"))
    assert path == Path("/Users/ann/Library/LaunchAgents/llmd.plist")
    assert bootstrap(path, 501) == ("launchctl", "bootstrap", "gui/501", str(path))
    assert bootout(501)[-1] == inspect(501)[-1] == "gui/501/llmd"

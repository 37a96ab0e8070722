from __future__ import annotations

import json
import subprocess

from tests.serving.home import LLMD, Home


def test_the_log_of_a_daemon_in_the_background_is_shown_and_followed(home: Home) -> None:
    assert home.llmd("-v", "serve", "--detach").returncode == 0
    try:
        lines = home.llmd("logs", "--lines", "1000").stdout.splitlines()
        assert [line for line in lines if " info serving " in line]
        with subprocess.Popen(
            (*LLMD, "logs", "-f", "--lines", "1"), stdout=subprocess.PIPE, text=True, env=home.environment
        ) as follower:
            assert follower.stdout is not None
            follower.stdout.readline()
            assert home.llmd("reload").returncode == 0
            assert " info reloaded" in iter(follower.stdout.readline, "").__next__() or any(
                " info reloaded" in line for line in follower.stdout
            )
            follower.terminate()
    finally:
        assert home.llmd("stop", "--daemon").returncode == 0
    # Without a daemon, it is the log of the last one.
    shown = home.llmd("logs", "--level", "error")
    assert (shown.returncode, shown.stdout) == (0, "")
    assert " info ended" in home.llmd("logs").stdout


def test_an_event_of_one_request_is_found_by_its_id(home: Home) -> None:
    assert home.llmd("-v", "--log-format", "json", "serve", "tiny", "--detach").returncode == 0
    try:
        assert home.llmd("run", "tiny", "Hello", "-n", "2").returncode == 0
        events = [json.loads(line) for line in home.llmd("logs").stdout.splitlines() if line[0] == "{"]
        request_id = next(event["request_id"] for event in events if event.get("model") and "path" in event)
        (found,) = home.llmd("logs", "--request", request_id).stdout.splitlines()
        assert json.loads(found)["event"] == "request"
    finally:
        assert home.llmd("stop", "--daemon").returncode == 0


def test_a_log_that_goes_elsewhere_is_not_found(home: Home) -> None:
    assert home.llmd("logs").returncode == 6
    with home.serve():
        done = home.llmd("logs")
        assert done.returncode == 3
        assert "logs neither to the journal nor to daemon.log" in done.stderr

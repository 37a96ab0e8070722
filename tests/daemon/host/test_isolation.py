"""Whatever happens in a child process becomes answers or a reason."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

from llmd.api.errors import PluginError
from llmd.host.isolation import run_isolated
from llmd.host.jobs import Began, Described, Found, Probe
from tests.plugin_sites import Site

TIME_LIMIT_S = 20.0
HEAD = """
from llmd.api import Backend, DeviceInfo, hookimpl
LLMD_API = 1

@hookimpl
def llmd_backends():
    return [Backend("made", probe, open_device)]

def open_device(name, options):
    raise RuntimeError("not opened")
"""


def reason(site: Site, probe: str, time_limit_s: float = TIME_LIMIT_S) -> str:
    plugin = site.write("made", f"{HEAD}\ndef probe():\n    {probe}\n")
    with pytest.raises(PluginError) as caught:
        run_isolated(Probe(plugin, ""), time_limit_s)
    assert caught.value.hint
    return caught.value.message


def test_answers_come_in_order_without_the_last(site: Site) -> None:
    plugin = site.write("made", HEAD + "def probe():\n    return []\n")
    answers = run_isolated(Probe(plugin, ""), TIME_LIMIT_S)
    assert [type(answer) for answer in answers] == [Began, Described, Began]


def test_a_crash_names_its_signal_and_what_was_done(site: Site) -> None:
    said = reason(site, "import ctypes; ctypes.string_at(0)")
    assert (
        said == "it crashed with SIGSEGV (Segmentation fault) while it looked for devices of backend 'made'"
    )


def test_a_signal_without_a_name_is_named_by_its_number(site: Site) -> None:
    said = reason(site, "import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 6)")
    assert said.startswith("it crashed with signal 40 (Real-time signal 6)")


@pytest.mark.parametrize("ending", ["import os; os.abort()", "import threading; threading.Event().wait()"])
def test_a_plugin_whose_import_does_not_end_well_is_to_be_uninstalled(site: Site, ending: str) -> None:
    plugin = site.write("made", ending)
    with pytest.raises(PluginError, match="while it was imported") as caught:
        run_isolated(Probe(plugin, ""), 4.0)
    assert caught.value.hint.startswith("uninstall made-made")


def test_a_hang_names_the_limit(site: Site) -> None:
    assert "did not finish within 1 s" in reason(site, "import threading; threading.Event().wait()", 1.0)


def test_an_end_without_an_answer_names_status_and_last_words(site: Site) -> None:
    said = reason(site, "import os, sys; print('no licence', file=sys.stderr, flush=True); os._exit(7)")
    assert said == "its process ended with status 7 while it looked for devices of backend 'made': no licence"


def test_an_exception_is_the_reason(site: Site) -> None:
    assert (
        reason(site, "raise ValueError('driver 7 is too old')") == "it raised ValueError: driver 7 is too old"
    )


def test_leaving_the_interpreter_is_a_failure_too(site: Site) -> None:
    assert reason(site, "raise SystemExit(0)") == "it raised SystemExit: 0"


def test_what_a_plugin_prints_is_no_answer(site: Site) -> None:
    probe = "def probe():\n    import os\n    print('{}')\n    os.write(1, b'garbage\\n')\n    return []\n"
    answers = run_isolated(Probe(site.write("made", HEAD + probe), ""), TIME_LIMIT_S)
    assert not [answer for answer in answers if isinstance(answer, Found)]


def test_a_module_in_the_current_folder_is_not_taken_for_another(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("raise ImportError('this is not msgspec')")
    monkeypatch.chdir(tmp_path)
    plugin = site.write("made", HEAD + "def probe():\n    return []\n")
    assert run_isolated(Probe(plugin, ""), TIME_LIMIT_S)


def test_processes_that_a_plugin_started_end_with_the_child(site: Site) -> None:
    plugin = site.write(
        "made",
        HEAD + "def probe():\n    import subprocess\n"
        "    child = subprocess.Popen(['sleep', '1000'])\n    raise RuntimeError(child.pid)\n",
    )
    with pytest.raises(PluginError) as caught:
        run_isolated(Probe(plugin, ""), TIME_LIMIT_S)
    process = int(caught.value.message.rsplit(" ", 1)[1])
    assert ends(process)


def ends(process: int) -> bool:
    """Whether a process is gone, or goes within seconds: a signal needs a moment to arrive."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 10.0)[0])
    finally:
        os.close(handle)

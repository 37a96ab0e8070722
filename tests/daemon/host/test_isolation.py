"""Whatever happens in a child process becomes answers or a reason."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from llmd.api.errors import PluginError
from llmd.host.isolation import BusyMachineError, OverrunError, overrun_error, run_isolated
from llmd.host.jobs import IMPORTED, Began, Described, Found, Probe
from llmd.host.names import PluginName
from llmd.process.limits import MachineLoad, TimeLimit, TimeSpent
from tests.plugin_sites import Site

LIMIT = TimeLimit(20.0, 20.0)
PROBE = Probe(PluginName("made", "made", "made-made", "1.0"), "")
LOAD = MachineLoad(14.2, 2)
LOOKED = Began("looked for devices of backend 'made'")
HEAD = """
from llmd.api import Backend, DeviceInfo, hookimpl
LLMD_API = 2

@hookimpl
def llmd_backends():
    return [Backend("made", probe, open_device)]

def open_device(name, options):
    raise RuntimeError("not opened")
"""


def written(site: Site, probe: str, **fields: object) -> PluginName:
    """Write a plugin whose backend has these fields."""
    given = "".join(f", {name}={value!r}" for name, value in fields.items())
    head = HEAD.replace("open_device)]", f"open_device{given})]")
    return site.write("made", f"{head}\ndef probe():\n    {probe}\n")


def reason(site: Site, probe: str, **fields: object) -> str:
    with pytest.raises(PluginError) as caught:
        run_isolated(Probe(written(site, probe, **fields), ""), LIMIT)
    assert caught.value.hint
    return caught.value.message


def test_answers_come_in_order_without_the_last(site: Site) -> None:
    plugin = site.write("made", HEAD + "def probe():\n    return []\n")
    answers = run_isolated(Probe(plugin, ""), LIMIT)
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
        run_isolated(Probe(plugin, ""), TimeLimit(4.0, 4.0))
    assert caught.value.hint.startswith("run `llmd plugins uninstall made-made`")


def test_a_hang_names_the_limit_and_the_load_of_the_machine(site: Site) -> None:
    said = reason(site, "import threading; threading.Event().wait()", probe_timeout_s=0.5)
    assert said.startswith("it did not finish within 3 s while it ")
    assert re.search(rf"; the load of the machine was [\d.]+ on {os.cpu_count()} processors$", said)


def test_a_child_that_gets_little_processor_time_goes_on(site: Site) -> None:
    wait = "import threading; threading.Event().wait(3.0)"
    plugin = written(site, f"{wait}; return []", probe_timeout_s=2.0)
    assert run_isolated(Probe(plugin, ""), LIMIT)


def test_a_child_that_computes_without_end_names_its_processor_time(site: Site) -> None:
    said = reason(site, "while True: pass", probe_timeout_s=1.5)
    assert said.startswith("it used ")
    assert said.endswith("while it looked for devices of backend 'made'; the limit is 1.5 s")


def test_a_step_has_the_limit_of_its_backend_and_not_what_is_left_of_the_one_before(site: Site) -> None:
    plugin = written(site, "import threading; threading.Event().wait(6.0); return []", probe_timeout_s=20.0)
    assert run_isolated(Probe(plugin, ""), TimeLimit(5.0, 5.0))


DEVICES = 'return [DeviceInfo(name, "toy", score, 1, ("f32",), ("f32",), ()) for name, score in {devices}]'


def prepared(site: Site, compile_: str, **fields: object) -> PluginName:
    """Write a plugin with a usable and an unusable device that are prepared by this code."""
    plugin = written(site, DEVICES.format(devices=[("toy:0", 1), ("toy:1", 0)]), **fields)
    source = site.folder / "made_made.py"
    code = source.read_text().replace("open_device, ", "open_device, prepare=compile, ")
    source.write_text(f"import time\n{code}\ndef compile(name):\n    {compile_}\n")
    return plugin


def test_a_device_may_be_prepared_for_longer_than_a_probe_may_take(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "compiled"
    compiles = f"while time.process_time() < 3.0: pass\n    print(name, file=open({str(path)!r}, 'a'))"
    answers = run_isolated(Probe(prepared(site, compiles, probe_timeout_s=1.0), ""), LIMIT)
    assert [one.device.reason for one in answers if isinstance(one, Found)] == [
        "opening or trying it raised RuntimeError: not opened",
        "its score is 0",
    ]
    assert path.read_text() == "toy:0\n"


def test_a_device_that_cannot_be_prepared_is_not_opened(site: Site) -> None:
    plugin = prepared(site, "raise OSError('no compiler')", probe_timeout_s=10.0)
    answers = run_isolated(Probe(plugin, ""), LIMIT)
    state, _ = (one.device for one in answers if isinstance(one, Found))
    assert (state.ok, state.reason) == (False, "preparing it raised OSError: no compiler")
    assert state.fix


def test_preparing_a_device_has_a_limit_of_its_own(site: Site) -> None:
    plugin = prepared(site, "time.sleep(1000)", prepare_timeout_s=1.5)
    with pytest.raises(OverrunError, match=r"did not finish within 1\.5 s while it prepared device 'toy:0'"):
        run_isolated(Probe(plugin, ""), LIMIT)


def test_a_busy_machine_is_named_instead_of_the_plugin() -> None:
    error = overrun_error(TimeLimit(10.0, 60.0), TimeSpent(2.13, 60.1, 51.34), LOAD, LOOKED, PROBE)
    assert isinstance(error, BusyMachineError)
    assert error.message == (
        "it did not finish within 60 s while it looked for devices of backend 'made': "
        "it had used 2.1 s of processor time and waited 51.3 s for a processor; the load of the machine was 14.2 on 2 processors"
    )
    assert error.hint == "run `llmd doctor` again when the machine is less busy"


@pytest.mark.parametrize("spent", [TimeSpent(0.3, 60.1, 0.2), TimeSpent(10.0, 20.0, 9.0)])
def test_a_plugin_that_hangs_or_computes_for_too_long_is_named(spent: TimeSpent) -> None:
    error = overrun_error(TimeLimit(10.0, 60.0), spent, LOAD, LOOKED, PROBE)
    assert isinstance(error, OverrunError)
    assert "plugin's authors" in error.hint
    importing = overrun_error(TimeLimit(10.0, 60.0), spent, LOAD, Began(IMPORTED), PROBE)
    assert importing.hint.startswith("run `llmd plugins uninstall made-made`")


@pytest.mark.parametrize(
    ("driver", "advice"), [("", "`llmd doctor` tries"), ("the toy driver", "check the toy driver; ")]
)
def test_only_a_backend_with_a_driver_is_told_to_check_it(site: Site, driver: str, advice: str) -> None:
    plugin = written(site, "import os; os.abort()", driver=driver)
    with pytest.raises(PluginError, match="SIGABRT") as caught:
        run_isolated(Probe(plugin, ""), LIMIT)
    assert caught.value.hint.startswith(advice)
    assert ("driver" in caught.value.hint) == bool(driver)


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
    answers = run_isolated(Probe(site.write("made", HEAD + probe), ""), LIMIT)
    assert not [answer for answer in answers if isinstance(answer, Found)]


def test_a_module_in_the_current_folder_is_not_taken_for_another(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("raise ImportError('this is not msgspec')")
    monkeypatch.chdir(tmp_path)
    plugin = site.write("made", HEAD + "def probe():\n    return []\n")
    assert run_isolated(Probe(plugin, ""), LIMIT)


def test_processes_that_a_plugin_started_end_with_the_child(site: Site) -> None:
    plugin = site.write(
        "made",
        HEAD + "def probe():\n    import subprocess\n"
        "    child = subprocess.Popen(['sleep', '1000'])\n    raise RuntimeError(child.pid)\n",
    )
    with pytest.raises(PluginError) as caught:
        run_isolated(Probe(plugin, ""), LIMIT)
    process = int(caught.value.message.rsplit(" ", 1)[1])
    assert ends(process)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
def test_a_child_ends_with_the_process_that_wants_its_answers(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    plugin = site.write(
        "made",
        HEAD + "def probe():\n    import os, pathlib, time\n"
        f"    file = pathlib.Path({str(path)!r}); file.with_suffix('.new').write_text(str(os.getpid()))\n"
        "    file.with_suffix('.new').rename(file)\n    time.sleep(1000)\n",
    )
    task = msgspec.json.encode(Probe(plugin, ""))
    code = (
        "import msgspec, sys\n"
        "from llmd.host.isolation import run_isolated\n"
        "from llmd.host.jobs import Probe\n"
        "from llmd.process.limits import TimeLimit\n"
        f"run_isolated(msgspec.json.decode({task!r}, type=Probe), TimeLimit(1000.0, 1000.0))\n"
    )
    search_path = os.pathsep.join(sys.path)
    with subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": search_path}
    ) as parent:
        while not path.exists():
            assert parent.poll() is None
            time.sleep(0.01)
        parent.kill()
    assert ends(int(path.read_text()))


def ends(process: int) -> bool:
    """Whether a process ends within seconds: a signal needs a moment to arrive."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 10.0)[0])
    finally:
        os.close(handle)

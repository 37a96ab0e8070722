"""The instruction-set units of the CPU backend replay the conformance cases:
under sanitizers, and emulated.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from llmd.api import INTEGER_FORMATS
from llmd.testing.case_files import write_case
from llmd.testing.conformance import cases_for
from llmd.testing.workload import Workload
from llmd_backend_cpu._ext import available_isas
from llmd_backend_cpu.device import describe
from tests.conformance.native_build import build_runner, built_units, check_syntax
from tests.instruction_sets import TESTED

RecordProperty = Callable[[str, object], None]

pytestmark = pytest.mark.timeout(3600)  # recompiles the kernels once for each state of their sources

CROSS = "aarch64-linux-gnu-g++"
# Calls instead of inline checks: the unrolled kernels compile in half the time, and in 0.85 of that without
# an analysis that only optimises.
SANITIZERS = (
    "-O1",
    "-fno-tree-pta",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "--param=asan-instrumentation-with-call-threshold=0",
)
THREAD_SANITIZER = ("-O1", "-g1", "-fsanitize=thread")
# Weights are unpacked by one kernel whatever their format, slowly, and the cases of tables have every format
# of it: these are a plain one, one that has minimums, one of two levels, one with a book and one with
# outliers.
UNPACKED = {"q4_0", "q4_g32", "q6_k", "iq4_nl", "q8_wide"}
# Zeros are left out by a kernel for each kind of codes: a format of each.
LEFT_OUT = {
    "q2",
    "q3",
    "q4",
    "q8_wide",
    "q2_g32",
    "q3_g32_sym",
    "q4_0",
    "q5_0",
    "q8_0",
    "q4_k",
    "q6_k",
    "mxfp4",
}
UNPACKED_ALIKE = {f"linear/{name}-activations-f32" for name in set(INTEGER_FORMATS) - UNPACKED}
ZEROS_ALIKE = {f"zeros/{name}" for name in set(INTEGER_FORMATS) - LEFT_OUT}
UNITS_OF_X86 = ("avx512", "avx_vnni", "avx2", "generic")  # the longest to compile first
UNITS_OF_AARCH64 = ("neon_i8mm", "neon", "generic")
COMMON_UNIT = "avx2" if "avx2" in available_isas() else "generic"
ON_X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the units of x86-64 need such a machine")
EMULATED = pytest.mark.skipif(
    shutil.which(CROSS) is None or shutil.which("qemu-aarch64") is None,
    reason="needs g++-aarch64-linux-gnu and qemu-user",
)


@pytest.fixture(scope="module")
def chosen() -> list[Workload]:
    return [case for case in cases_for(describe()) if case.name not in UNPACKED_ALIKE | ZEROS_ALIKE]


@pytest.fixture(scope="module")
def cases(chosen: list[Workload], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return written(chosen, tmp_path_factory.mktemp("cases"))


def test_the_replayed_cases_have_every_op(chosen: list[Workload]) -> None:
    assert {op.kind for case in chosen for op in case.ops} == set(describe().ops)
    assert any(set(case.adapters) - {-1} for case in chosen), "rows with adapters are replayed, too"


def written(cases: Iterable[Workload], folder: Path) -> list[Path]:
    paths = []
    for case in cases:
        path = folder / case.name.replace("/", "-")
        write_case(case, path)
        paths.append(path)
    return paths


@ON_X86
@pytest.mark.exhaustive
@pytest.mark.parametrize("sanitizers", [SANITIZERS, THREAD_SANITIZER], ids=["memory", "threads"])
def test_all_units_of_x86_pass_under_sanitizers(sanitizers: Sequence[str], cases: list[Path]) -> None:
    replayed = replay_on_x86(UNITS_OF_X86, sanitizers, cases)
    assert COMMON_UNIT in replayed
    assert "generic" in replayed
    assert set(replayed) <= {*UNITS_OF_X86, "amx"}


@EMULATED
@pytest.mark.parametrize("isa", ["neon_i8mm", "neon"])
def test_the_neon_units_are_valid(isa: str) -> None:
    """The next test, which takes minutes, runs them."""
    check_syntax(CROSS, isa)


@EMULATED
@pytest.mark.exhaustive
def test_all_neon_units_pass_on_an_emulated_machine(
    cases: list[Path], record_property: RecordProperty
) -> None:
    record_property(TESTED, "neon (emulated)")
    assert replay_emulated("max", UNITS_OF_AARCH64, cases) == list(UNITS_OF_AARCH64)


@EMULATED
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("cpu", "units"), [("neoverse-n1", ["neon", "generic"]), ("cortex-a72", ["generic"])]
)
def test_a_machine_gets_no_unit_with_instructions_it_lacks(
    cases: list[Path], cpu: str, units: list[str]
) -> None:
    assert replay_emulated(cpu, UNITS_OF_AARCH64, cases[::10]) == units


@pytest.mark.parametrize("unit", built_units(), ids=lambda path: path.name.split(".")[0])
def test_a_unit_shares_no_code_with_others(unit: Path) -> None:
    """The linker keeps one copy of a shared inline function:
    were it the AVX-512 one, older machines would crash.
    """
    isa = unit.name.split(".")[0]
    symbols = subprocess.run(["nm", "-C", str(unit)], check=True, capture_output=True, text=True).stdout
    weak = [line[19:] for line in symbols.splitlines() if line[17:18] in {"W", "V", "u"}]
    shared = [name for name in weak if not name.startswith("DW.ref.")]  # where to find a function, no code
    assert shared, "templates of the unit"
    assert [name for name in shared if f"llmd::{isa}::" not in name.split("(")[0]] == []


def test_set_up_has_left_the_units() -> None:
    assert {path.name.split(".")[0] for path in built_units()} >= set(available_isas()) - {"amx"}


def replay_on_x86(isas: Sequence[str], sanitizers: Sequence[str], cases: Sequence[Path]) -> list[str]:
    """The units that replayed the cases, of those of ``isas`` that this machine has."""
    return replay([str(build_runner("g++", isas, sanitizers))], cases)


def replay_emulated(cpu: str, isas: Sequence[str], cases: Sequence[Path]) -> list[str]:
    """The units of ``isas`` that replayed the cases on an emulated machine."""
    runner = build_runner(CROSS, isas, ("-O2", "-static"))
    return replay(["qemu-aarch64", "-cpu", cpu, str(runner)], cases)


def replay(command: Sequence[str], cases: Sequence[Path]) -> list[str]:
    """Replay the cases in two processes, half of them in each; return the units that ran them."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        one, other = pool.map(partial(_replayed, command), (cases[::2], cases[1::2]))
    assert one == other
    return one


def _replayed(command: Sequence[str], cases: Sequence[Path]) -> list[str]:
    done = subprocess.run([*command, *map(str, cases)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return [line.split(":")[0] for line in done.stdout.splitlines()]

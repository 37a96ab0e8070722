"""The checks' view of the native core matches the build."""

from __future__ import annotations

from pathlib import Path

from tools.native import CSRC, PLUGIN, binding_sources, core_sources, isa_flags, unit_source
from tools.native_warnings import WARNINGS, said


def test_every_translation_unit_is_known() -> None:
    units = {unit_source(isa) for isa in isa_flags()}
    known = units | set(core_sources()) | set(binding_sources())
    assert known == {path.relative_to(CSRC) for path in CSRC.rglob("*.cpp")}


def test_flags_of_a_set_contain_those_it_builds_on() -> None:
    flags = isa_flags()
    assert flags["generic"] == ()
    assert set(flags["avx2"]) < set(flags["avx512"])
    assert {"-mavx2", "-mavx512vnni"} <= set(flags["avx512"])


def test_a_warning_does_not_end_the_build_of_a_user() -> None:
    assert "-Werror" not in (PLUGIN / "CMakeLists.txt").read_text()


def test_a_warning_is_an_error_of_the_check(tmp_path: Path) -> None:
    source = tmp_path / "loop.cpp"
    check = ["g++", *WARNINGS, str(source)]
    source.write_text("template <class T> T f(T t) { int unused; return t; }\nint g() { return f(1); }\n")
    assert "unused" in said(check)
    source.write_text("int g() { return 1; }\n")
    assert not said(check)

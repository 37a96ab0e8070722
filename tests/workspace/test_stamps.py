"""Setup steps run again if and only if their inputs have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.stamps import Stamps


class Step:
    """A step that counts its runs and creates its folder, like a real one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.num_runs = 0

    def __call__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.num_runs += 1


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """A folder that a step reads."""
    folder = tmp_path / "inputs"
    (folder / "build").mkdir(parents=True)
    (folder / "a").write_text("1")
    return folder


@pytest.fixture
def step(tmp_path: Path) -> Step:
    """A step that has run once."""
    return Step(tmp_path / "made")


def run(step: Step, inputs: Path, facts: str = "") -> int:
    """Run ``step`` if its inputs have changed; return how often it has run."""
    Stamps(step.folder).run("step", [inputs], step, facts=facts)
    return step.num_runs


def test_step_is_passed_over_while_nothing_has_changed(step: Step, inputs: Path) -> None:
    assert [run(step, inputs), run(step, inputs)] == [1, 1]


def test_it_says_whether_the_step_ran(step: Step, inputs: Path) -> None:
    stamps = Stamps(step.folder)
    assert [stamps.run("step", [inputs], step) for _ in range(2)] == [True, False]


def test_step_runs_again_when_a_file_changes(step: Step, inputs: Path) -> None:
    run(step, inputs)
    (inputs / "a").write_text("2")
    assert run(step, inputs) == 2


def test_step_runs_again_when_a_file_is_renamed(step: Step, inputs: Path) -> None:
    run(step, inputs)
    (inputs / "a").rename(inputs / "b")
    assert run(step, inputs) == 2


def test_step_runs_again_when_the_facts_change(step: Step, inputs: Path) -> None:
    run(step, inputs, facts="Python 3.11")
    assert run(step, inputs, facts="Python 3.13") == 2


def test_step_runs_again_when_its_folder_was_deleted(step: Step, inputs: Path) -> None:
    run(step, inputs)
    for path in step.folder.iterdir():
        path.unlink()
    step.folder.rmdir()
    assert run(step, inputs) == 2


def test_leavings_of_a_build_do_not_count_as_change(step: Step, inputs: Path) -> None:
    run(step, inputs)
    (inputs / "build" / "object.o").write_text("")
    assert run(step, inputs) == 1


def test_a_workspace_below_a_folder_called_build_is_read_all_the_same(tmp_path: Path) -> None:
    inputs, step = tmp_path / "build" / "llmd", Step(tmp_path / "made")
    inputs.mkdir(parents=True)
    (inputs / "a").write_text("1")
    run(step, inputs)
    (inputs / "a").write_text("2")
    assert run(step, inputs) == 2


def test_failed_step_runs_again(step: Step, inputs: Path) -> None:
    def fail() -> None:
        step()
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        Stamps(step.folder).run("step", [inputs], fail)
    assert run(step, inputs) == 2

"""The size check finds long files and long functions, and nothing else."""

from __future__ import annotations

from pathlib import Path

from tools.sizes import file_faults, function_faults, function_lengths

SOURCE = '''
def short():
    """Say what it does.

    At length.
    """
    return 1

async def nested():
    def inner():
        pass
    return inner
'''


def files(*lengths: int) -> dict[Path, int]:
    """Return files of these lengths, named by number."""
    return {Path(f"{number}.py"): length for number, length in enumerate(lengths)}


def test_file_over_the_hard_limit_is_named() -> None:
    assert file_faults(files(*[10] * 9, 400)) == []
    (fault,) = file_faults(files(*[10] * 9, 401))
    assert fault.startswith("9.py: 401 lines")


def test_too_many_files_over_the_aim_are_named() -> None:
    assert file_faults(files(*[200] * 17, 201, 201, 201)) == []
    (fault,) = file_faults(files(*[200] * 16, 201, 201, 201, 201))
    assert "16 of 20" in fault
    assert "19.py" in fault


def test_long_median_and_long_tail_of_functions_are_faults() -> None:
    assert function_faults([9] * 9 + [100]) == []
    assert len(function_faults([10] * 10)) == 1
    assert len(function_faults([9] * 8 + [30] * 2)) == 1


def test_docstrings_do_not_count_as_length() -> None:
    assert sorted(function_lengths(SOURCE)) == [2, 2, 4]

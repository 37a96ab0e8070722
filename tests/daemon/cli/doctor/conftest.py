"""A user for each test, with the model ``tiny`` and no settings but an address."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.daemon.cli.doctor.patient import Patient, patient_at
from tests.serving.home import Home


@pytest.fixture
def patient(home: Home, tmp_path: Path) -> Patient:
    return patient_at(home, tmp_path / "bin")

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import ConfigError, LlmdError, ModelError, NotFoundError
from llmd.cli.service.served_models import check_serves
from llmd.config import Settings, load_settings
from tests.serving.model import write_model
from tests.serving.running import directories_below


def settings_below(root: Path, **flags: object) -> Settings:
    return load_settings(flags, environ={}, directories=directories_below(root))


def test_models_that_can_be_served_pass(tmp_path: Path) -> None:
    settings = settings_below(tmp_path, alias=["mine=guide"])
    write_model(settings.directories.models / "stored")
    write_model(tmp_path / "elsewhere")
    check_serves(["guide", "stored", str(tmp_path / "elsewhere")], settings)
    check_serves([], settings)


def test_a_damaged_model_is_refused_with_the_reason(tmp_path: Path) -> None:
    write_model(tmp_path / "damaged")
    (tmp_path / "damaged" / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"damaged cannot be loaded: .*config\.json"):
        check_serves([str(tmp_path / "damaged")], settings_below(tmp_path))


@pytest.mark.parametrize(
    ("alias", "error"), [("mine", ConfigError), ("mine=nobody", NotFoundError), ("..=guide", LlmdError)]
)
def test_an_alias_that_would_keep_the_daemon_from_starting_is_refused(
    tmp_path: Path, alias: str, error: type[LlmdError]
) -> None:
    with pytest.raises(error):
        check_serves([], settings_below(tmp_path, alias=[alias]))


def test_the_service_of_the_system_has_models_of_its_own(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    with pytest.raises(NotFoundError, match="there is no model 'mine'") as missing:
        check_serves(["mine"], settings, is_system=True)
    assert missing.value.hint == (
        f"this service has its own models, in {settings.directories.models}: copy the model there,"
        " or give its path"
    )

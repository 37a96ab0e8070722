from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gguf import GGMLQuantizationType

from llmd.api.errors import LlmdError
from llmd.config import load_settings
from llmd.server.engines.admission_limits import QueueLimits
from llmd.server.models.model_loading import queue_limits
from tests.serving.gguf_model import write_gguf_model
from tests.serving.http import chat, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, directories_below, running_daemon


def test_limits_of_a_queue_are_those_of_the_settings(tmp_path: Path) -> None:
    flags = {"max_queue": 3, "max_queue_per_key": 2, "max_queue_tokens": 9}
    settings = load_settings(flags, environ={}, directories=directories_below(tmp_path))
    assert queue_limits(settings.config) == QueueLimits(3, 2, 9)


def test_a_model_that_is_loaded_later_has_the_new_settings(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, probes)
    write_model(directories.models / MODEL)
    directories.config.mkdir()
    with running_daemon(directories) as daemon:
        directories.user_config.write_text("[engine]\nmax_ctx = 64\n")
        daemon.reload()
        (row,) = send(daemon, "GET", "/llmd/ps", unix=True).json["models"]
        assert row["context_len"] > 64
        daemon.client().stop(MODEL)
        assert chat(daemon).status == 200
        (row,) = send(daemon, "GET", "/llmd/ps", unix=True).json["models"]
        assert row["context_len"] == 64


def test_a_format_for_all_models_applies_where_weights_are_plain(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, probes)
    write_model(directories.models / MODEL)
    blocks = write_gguf_model(directories.models / "blocks" / "m.gguf", kind=GGMLQuantizationType.Q8_0)
    directories.config.mkdir()
    directories.user_config.write_text('[engine]\nquant = "q4"\n')
    with running_daemon(directories) as daemon:
        client = daemon.client()

        def load(model: str) -> dict[str, Any]:
            *_, last = client.load(model)
            return last

        quantised_bytes = load(MODEL)["size_bytes"]
        assert "q8_0: the setting quant = q4 is ignored" in load("blocks")["notices"][-1]
        client.stop("blocks")
        directories.user_config.write_text('[engine]\nquant = "q4"\n[models.blocks]\nquant = "q8"\n')
        daemon.reload()
        with pytest.raises(
            LlmdError, match=f"quant q8: the weights of {blocks} are stored quantised already"
        ):
            load("blocks")
        directories.user_config.write_text(f'[engine]\nquant = "q4"\n[models.{MODEL}]\nquant = "none"\n')
        daemon.reload()
        client.stop(MODEL)
        assert load(MODEL)["size_bytes"] > quantised_bytes

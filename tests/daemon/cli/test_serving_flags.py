"""``llmd serve`` accepts flags of other tools."""

from __future__ import annotations

import click
import pytest

from llmd.api.errors import ConfigError
from llmd.cli.serve import command
from llmd.cli.serving_flags import typed_addresses


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (("-c", "64"), "max_ctx", 64),
        (("--ctx-size", "64"), "max_ctx", 64),
        (("--max-model-len=64",), "max_ctx", 64),
        (("-np", "3"), "slots", 3),
        (("--parallel", "3"), "slots", 3),
        (("--max-num-seqs", "3"), "slots", 3),
        (("-t", "2"), "threads", 2),
        (("--ssl-certfile", "a.pem"), "tls_cert", "a.pem"),
        (("--ssl-key-file", "a.key"), "tls_key", "a.key"),
        (("--served-model-name", "mine"), "alias", ("mine",)),
        (("-ngl", "20"), "gpu_layers", 20),
        (("--n-gpu-layers=20",), "gpu_layers", 20),
        (("--n-cpu-moe", "20"), "cpu_experts", 20),
    ],
)
def test_names_of_other_tools_mean_the_same(words: tuple[str, ...], name: str, value: object) -> None:
    context = command.make_context("serve", ["-m", "guide", *words])
    assert (context.params["models"], context.params[name]) == (("guide",), value)


def test_help_shows_the_names_of_llmd_alone() -> None:
    text = command.get_help(click.Context(command))
    assert "-c, --max-ctx N" in text
    assert "--ctx-size" not in text
    assert "-np" not in text


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        (None, 9000, "127.0.0.1:9000"),
        ("0.0.0.0", None, "0.0.0.0:8642"),
        ("0.0.0.0", 9000, "0.0.0.0:9000"),
        ("::", 9000, "[::]:9000"),
        ("https://box", 9000, "https://box:9000"),
        ("unix:/run/x.sock", None, "unix:/run/x.sock"),
    ],
)
def test_host_and_port_are_one_address(host: str | None, port: int | None, address: str) -> None:
    assert typed_addresses((), host, port) == (address,)


def test_addresses_are_said_in_one_way() -> None:
    assert typed_addresses(("box:1", "box:2"), None, None) == ("box:1", "box:2")
    assert typed_addresses((), None, None) == ()
    with pytest.raises(ConfigError, match="cannot be combined"):
        typed_addresses(("box:1",), None, 9000)
    with pytest.raises(ConfigError, match="takes no port"):
        typed_addresses((), "unix:/run/x.sock", 9000)
    with pytest.raises(ConfigError, match="--host is 'a/b', which is not an address"):
        typed_addresses((), "a/b", 9000)

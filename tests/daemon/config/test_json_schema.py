from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from llmd.config.config_change import errors_of_text
from llmd.config.json_schema import json_schema
from llmd.config.setting_values import setting_fields

PUBLISHED = Path(__file__).parents[3] / "docs" / "config.schema.json"


def test_the_published_schema_is_the_current_one() -> None:
    hint = "run `llmd config schema > docs/config.schema.json`"
    assert json.loads(PUBLISHED.read_text()) == json_schema(), hint


def test_it_is_a_schema_with_every_setting() -> None:
    schema = json_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    tables = schema["properties"]
    named = {
        f"{table}.{name}" for table in tables if table != "models" for name in tables[table]["properties"]
    }
    assert named == setting_fields().keys()
    assert tables["engine"]["properties"]["slots"] == {
        "description": "Sequences that run at a time.",
        "type": "integer",
        "minimum": 1,
        "default": 8,
    }


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("[engine]\nslots = 3\nkv_dtype = 'int8'\nkv_memory = '1.5GiB'\nweight_cache = 0", True),
        ("[server]\naddr = ['127.0.0.1:1']\nkeep_alive = '1h30m'\nno_auth = true\ndrain_s = 0.5", True),
        ("[server]\naddr = '127.0.0.1:1,unix:/x'\nkeep_alive = -1", True),
        ("[models.'org/a']\nslots = 3\ntool_parser = 'none'", True),
        ("[models.a]\nquant = 'q4_g64'", True),
        ("[engine]\nsplit = 'embed-3=cpu, 4.mixer-head=cuda:1'", True),
        ("[engine]\nsplit = '0-3=cpu;4-7=cpu'", False),
        ("[engine]\nsplit = '0-3'", False),
        ("[engine]\nquant = 'q4_0'", False),
        ("[engine]\nslots = 0", False),
        ("[engine]\nslot = 3", False),
        ("[engin]\nslots = 3", False),
        ("[engine]\nkv_dtype = 'f8'", False),
        ("[engine]\nkv_memory = '1 GB/s'", False),
        ("[server]\nkeep_alive = 'soon'", False),
        ("[client]\ntimeout_s = 0", False),
        ("[client]\ntimeout_s = 1e6", False),
        ("[models.a]\nmax_body = 3", False),
    ],
)
def test_it_accepts_what_llmd_accepts(text: str, *, is_right: bool) -> None:
    assert jsonschema.Draft7Validator(json_schema()).is_valid(tomllib.loads(text)) == is_right
    assert (errors_of_text(Path("c.toml"), text) == []) == is_right

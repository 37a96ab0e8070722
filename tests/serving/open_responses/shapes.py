"""Readers of the shapes; they raise `msgspec.ValidationError`, which says where a value differs."""

from __future__ import annotations

import msgspec

from tests.serving.open_responses.events import Event
from tests.serving.open_responses.response import Response

responses = msgspec.json.Decoder(Response)
events = msgspec.json.Decoder(Event)

"""The shapes of `/v1/responses`, after version 2026-04-24 of the Open Responses specification,
published on that day.

Its schema is ``openapi/2026-04-24/openapi.json`` of openresponses.org. These shapes are our own, and
stricter: they have the fields that llmd sends and no other, so that a field that is missing, of another type
or unknown is a mistake. What OpenAI's API has and the specification does not is marked "OpenAI's own": the
specification allows more fields in its objects, and OpenAI's clients read these.
"""

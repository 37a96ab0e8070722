"""Describes the daemon's routes as an OpenAPI document, from the tables of routes of its dialects."""

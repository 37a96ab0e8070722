"""Measurements; see METHODOLOGY.md."""

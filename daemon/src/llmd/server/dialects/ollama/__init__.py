"""Ollama's API, so that its clients work with llmd unchanged."""

"""Ollama's API, so that what people have pointed at it works with llmd as it is."""

"""Benchmarks of a server with OpenAI's API, with the measures of ``vllm bench serve``."""

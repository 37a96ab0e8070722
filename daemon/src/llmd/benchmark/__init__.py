"""Load on a server that speaks OpenAI's API, and what its clients see: the measures of ``vllm bench serve``."""

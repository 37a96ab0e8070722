"""Reranking: the API of Jina and Cohere, which vLLM and llama.cpp serve, too."""

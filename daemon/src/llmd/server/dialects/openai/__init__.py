"""OpenAI's API, with the extensions of vLLM and llama.cpp that clients use."""

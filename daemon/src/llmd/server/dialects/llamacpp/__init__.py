"""llama.cpp's own routes, and vLLM's of the same names."""

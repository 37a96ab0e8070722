"""llama.cpp's own routes, and vLLM's routes of the same names."""

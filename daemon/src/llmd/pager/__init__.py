"""KV blocks: pools, block tables and lengths of sequences. Pure; used by the engine's loop thread alone."""

"""KV blocks: pools, block tables and lengths of sequences. No I/O; used by the engine's loop thread only."""

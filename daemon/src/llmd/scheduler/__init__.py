"""Choose the rows of the next step. No I/O; used by the engine's loop thread only."""

"""Which rows the next step carries. Pure; used by the engine's loop thread alone."""

"""Where a model runs: its stages, their memory and KV pools, and what follows when a device is lost."""

"""The engine process: one loaded model, one loop, one step at a time across the stages."""

"""The engine process: one loaded model and one loop that runs its steps across the stages."""

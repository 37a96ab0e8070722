"""Child processes: frames of messages, workers with limits, and the time that they use."""

"""Child processes: message frames, workers with limits, and measuring the time that they use."""

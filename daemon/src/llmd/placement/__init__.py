"""Which device runs which part of a model: a pure function of what they cost and of the memory there is."""

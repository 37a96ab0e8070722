"""The reference backend: every op in NumPy, float64 inside, row by row. The executable specification."""

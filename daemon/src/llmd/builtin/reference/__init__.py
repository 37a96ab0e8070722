"""The reference backend: every op in NumPy, row by row, in float64. It is the executable specification."""

"""Models that generate and are asked how well documents answer a query."""

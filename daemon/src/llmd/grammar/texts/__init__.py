"""Sets of texts as regular expressions: union, intersection and complement of patterns, and patterns of other dialects. Pure."""

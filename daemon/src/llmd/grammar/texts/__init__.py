"""Regular expressions as sets of texts: union, intersection, complement; conversion from JavaScript. Pure."""

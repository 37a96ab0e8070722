"""Quantised weights: decode blocks of files, dequantise, quantise. docs/formats.md defines the formats."""

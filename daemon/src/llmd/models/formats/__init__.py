"""Quantised weights: decoding the blocks of files, dequantising, quantising. docs/formats.md defines the formats."""

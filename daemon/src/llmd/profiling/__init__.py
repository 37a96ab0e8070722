"""Measuring devices: small models run on them, as any model would."""

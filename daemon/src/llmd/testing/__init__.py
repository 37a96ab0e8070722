"""Test tools for llmd and its plugins: small plans, random weights, a null device, the conformance suite."""

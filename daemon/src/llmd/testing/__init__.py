"""For plugin authors and our own tests: small plans, random weights, a null device, the conformance suite."""

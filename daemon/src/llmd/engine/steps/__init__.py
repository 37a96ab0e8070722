"""Steps: arrays from a plan, the pipeline of stages that they pass, and how many are in flight."""

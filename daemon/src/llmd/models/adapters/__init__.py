"""LoRA adapters in the form of PEFT: their configuration, their tensors, and the plans that apply them."""

"""The CUDA backend: kernels compiled at run time for NVIDIA GPUs."""

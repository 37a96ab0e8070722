"""The Vulkan backend of llmd: compute shaders that run through Kompute."""

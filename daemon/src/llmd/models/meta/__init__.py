"""Models in the layout of Meta's Llama and Mistral's releases: ``params.json`` and ``consolidated`` files."""

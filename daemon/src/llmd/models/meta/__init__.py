"""Models in the layout in which Meta published Llama, and Mistral its models: ``params.json`` and ``consolidated`` files."""

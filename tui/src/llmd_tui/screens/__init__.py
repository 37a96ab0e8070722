"""The screens, each a package with its widgets."""

"""The documentation of each setting: the text below its field in the schema."""

from __future__ import annotations

import functools

from llmd.config import schema
from llmd.config.field_docs import module_docs


@functools.cache
def setting_docs() -> dict[str, str]:
    """Return what each setting means, in one paragraph, by its bare name: ``slots``."""
    classes = module_docs(schema.__name__).values()
    return {name: text.replace("``", "`") for docs in classes for name, text in docs.items()}

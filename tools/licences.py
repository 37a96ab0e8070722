"""Determines the licences of installed distributions from their metadata."""

from __future__ import annotations

import re
from importlib.metadata import Distribution

ALLOWED = frozenset(
    {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib"}
)

# How distributions without an SPDX expression name the licences above.
SPDX_NAMES = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "the unlicense (unlicense)": "Unlicense",
    "zlib/libpng license": "Zlib",
}


def licence_of(distribution: Distribution) -> str:
    """Return the SPDX expression of a distribution; empty if it states no licence.

    Sources, in this order: ``License-Expression``, classifiers, the first line of ``License``.
    """
    metadata = distribution.metadata
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    classifiers = metadata.get_all("Classifier") or []
    stated = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License ::")]
    licences = [name for name in map(spdx_name, stated) if name != "DFSG approved"]
    if licences:
        return " AND ".join(licences)
    return spdx_name(metadata["License"].partition("\n")[0]) if "License" in metadata else ""


def spdx_name(stated: str) -> str:
    """Return the SPDX identifier of a licence named in metadata."""
    return SPDX_NAMES.get(stated.strip().lower(), stated.strip())


def not_allowed(expression: str) -> set[str]:
    """Return the licences that make an SPDX expression forbidden; none if one alternative is allowed.

    Parentheses are not parsed: no distribution here uses them, and one that did would be reported.
    """
    alternatives = [
        {licence.strip() for licence in re.split(r"\s+AND\s+", alternative)} - ALLOWED
        for alternative in re.split(r"\s+OR\s+", expression)
    ]
    return min(alternatives, key=len)

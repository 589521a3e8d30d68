"""What sort of page this is, guessed from the names in it, its address and what it says it is.

What counts as main text depends on it: comments are furniture below an article and the page itself
in a forum; a list of links is a menu on one page and the contents of another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from search_backend.readers._blocks import Layout

GENRES = ("article", "collection", "documentation", "forum", "listing", "product", "service")
_WORDS = re.compile(r"[a-z0-9]+")
MOST_SEGMENTS = 5


def page_names(page: Layout, url: str, kind: int) -> set[str]:
    """All by which the model knows a page. `kind` is what the page says it is."""
    names = set().union(*{box.names for box in page.boxes})
    try:
        parts = urlsplit(url.lower())
    except ValueError:
        return {*names, f"kind {kind}"}
    segments = [part for part in parts.path.split("/") if part]
    words = _WORDS.findall(parts.path)
    return {
        *names,
        *("/#" if word.isdigit() else f"/{word}" for word in words),
        *(f"host {part}" for part in parts.netloc.split(".")),
        f"/ {min(len(segments), MOST_SEGMENTS)}",
        f"kind {kind}",
    }


def genre(names: set[str], weights: Mapping[str, Sequence[float]]) -> list[float]:
    """How likely each of GENRES is, 0 to 1. `weights` has one for each; "" counts for all pages."""
    sums = list(weights.get("", (0.0,) * len(GENRES)))
    for name in names:
        if (row := weights.get(name)) is not None:
            sums = [total + weight for total, weight in zip(sums, row, strict=True)]
    most = max(sums)
    powers = [math.exp(total - most) for total in sums]
    whole = sum(powers)
    return [power / whole for power in powers]

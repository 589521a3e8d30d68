"""`searchloop search-backend serve`: the search backend alone, for this or any other client."""

from __future__ import annotations

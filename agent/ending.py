"""How a decoder raises: what was decoded before an error is shown before it.

Bytes come in pieces of any size. An error raised at once would lose what the same piece held
before it, and what a reader sees would depend on how the network cut the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.errors import ProviderError
from agent.types import StreamEvent


def then_raise(events: Iterable[StreamEvent], error: ProviderError) -> Iterator[StreamEvent]:
    """Yields `events`, then raises `error`."""
    yield from events
    raise error

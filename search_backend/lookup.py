"""One look-up of a name, given up when its time is over.

Resolvers cannot be stopped, so each look-up has a thread of its own; whoever asked stops waiting.

Spec: RFC 1035; getaddrinfo(3)
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

from search_backend.errors import NotReachable

# (host, port) -> addresses as text. Called once for each hop. Raises OSError.
Resolver = Callable[[str, int], Sequence[str]]

# Look-ups that hang must not pile up threads without end.
_running = threading.BoundedSemaphore(64)


def look_up(resolve: Resolver, host: str, port: int, seconds: float) -> Sequence[str]:
    """What `resolve` says, asked once. Raises NotReachable, also when it takes too long."""
    outcome: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            outcome.put(tuple(resolve(host, port)))
        except Exception as error:  # judged by the thread that waits
            outcome.put(error)
        finally:
            _running.release()

    if not _running.acquire(timeout=seconds):
        raise NotReachable("too many look-ups hang")
    threading.Thread(target=work, name="look-up", daemon=True).start()
    try:
        found = outcome.get(timeout=seconds)
    except queue.Empty:
        raise NotReachable(f"looking up {host} took too long") from None
    if isinstance(found, OSError | ValueError):
        raise NotReachable(f"{host}: {found}") from found
    if isinstance(found, Exception):
        raise found
    return found

"""Has the chats of a file parsed in a process that may be killed, as pages are read.

Small chats are asked for together. Where that fails, each is asked for alone, so that one that
takes too much time or memory takes no other along.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from searchloop.imports.reading import Fault, Raw
from searchloop.imports.worker import __name__ as _WORKER
from searchloop.imports.worker import answer_to
from searchloop.search_backend.pages.workers import Workers
from searchloop.search_backend.types import Problem

_TOGETHER = 256 << 10  # bytes of the chats that are asked for together
_SECONDS = 10.0  # for these
_PARSERS = Workers(seconds=_SECONDS, module=_WORKER)
atexit.register(_PARSERS.close)


def parsed(items: Iterable[Raw | Fault]) -> Iterator[dict[str, Any]]:
    """Yields {chat} or {fault} for each, all with {left_out: {name: count}} or without.

    `chat` is what `ImportedChat.as_dict` returned.
    """
    waiting, size = list[Raw](), 0
    for item in chain(items, (None,)):
        if waiting and (isinstance(item, Fault | None) or size + len(item[1]) > _TOGETHER):
            yield from _asked(waiting)
            waiting, size = [], 0
        if isinstance(item, Fault):
            yield {"fault": str(item)}
        elif item:
            waiting.append(item)
            size += len(item[1])


def _asked(chats: list[Raw]) -> Iterator[dict[str, Any]]:
    head = {"sizes": [(number, len(raw)) for number, raw in chats]}
    body = b"".join(raw for _, raw in chats)
    # Python inside another program cannot start itself.
    told = _PARSERS.answer(head, body) if sys.executable else answer_to(head, body, cut=False)
    if not isinstance(told, Problem):
        yield from told["found"]
    elif len(chats) == 1:
        yield {"fault": f"Chat {chats[0][0]:,} takes too much time or memory to be read."}
    else:
        for each in chats:
            yield from _asked([each])

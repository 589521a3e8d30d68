"""The process that parses chats, and may be killed at any time.

As `search_backend.pages.worker` does, but for a head {sizes: [[number, bytes], ...]}, a body of
these chats, and an answer {found: [{chat | fault, left_out}, ...]}.
"""

from __future__ import annotations

import functools
import gc
import json
import pkgutil
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from searchloop.imports.chats import not_read

MOST_VALUES = 1_000_000  # of one chat; each takes up to 200 bytes of memory
LARGER = 6  # a chat may have 32 MiB, and this many times the memory of a page
_NO_FORMATS = {"chats", "reading", "worker"}


def answer_to(head: Mapping[str, Any], body: bytes, cut: bool) -> dict[str, Any]:
    """Returns what is in each of the chats of a body."""
    found, at = list[dict[str, Any]](), 0
    gc.disable()  # nothing is garbage before the answer is whole, so none is looked for
    try:
        for number, size in head["sizes"]:
            found += _found(number, body[at : at + size])
            at += size
    finally:
        gc.enable()
    return {"found": found}


def _found(number: int, raw: bytes) -> Iterator[dict[str, Any]]:
    if sum(map(raw.count, (b"{", b"[", b","))) > MOST_VALUES:
        yield {"fault": f"Chat {number:,} holds too many values."}
        return
    text = raw.decode("utf-8", "replace")
    lost = text.count("\ufffd") - raw.count("\ufffd".encode())
    del raw  # of a large chat each copy counts
    try:
        value = json.loads(text)
        del text
    except (ValueError, RecursionError):
        yield {"fault": f"Chat {number:,} is damaged."}
        return
    inner = value.get("conversations", value.get("chats"))
    items = [e for e in inner if isinstance(e, dict)] if isinstance(inner, list) else [value]
    for item in items:
        left_out = Counter[str]({"letters that are not UTF-8": lost} if lost else ())
        lost = 0
        try:
            yield {**_read(item, left_out), "left_out": left_out}
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            yield {"fault": not_read(error)}


def _read(item: dict[str, Any], left_out: Counter[str]) -> dict[str, Any]:
    for known in _formats():
        if chat := known.read(item, left_out):
            return {"chat": chat.as_dict()}
    origins = ", ".join(known.ORIGIN for known in _formats())
    return {"fault": f"One part of the file is a chat of none of these: {origins}."}


@functools.cache
def _formats() -> list[Any]:
    """Returns the modules beside this one that read a format."""
    names = (found.name for found in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return [import_module(f"{__package__}.{name}") for name in names if name not in _NO_FORMATS]

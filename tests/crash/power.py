"""What is left of files when the power fails: of what was not synced, anything."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.disk import Op

_SECTORS = (512, 4096)


@dataclass
class _File:
    """A file as it is for sure, and what it was told since; `sure` once its name is, too."""

    synced: bytearray = field(default_factory=bytearray)
    told: list[Op] = field(default_factory=list)
    sure: bool = False

    def tell(self, op: Op) -> None:
        self.told.append(op)

    def sync(self) -> None:
        for op in self.told:
            _apply(self.synced, op)
        self.told.clear()

    def after(self, luck: random.Random) -> bytes:
        """One of the states that it may be found in."""
        content = bytearray(self.synced)
        for op in _surviving(self.told, luck):
            _apply(content, op)
        return bytes(content)


def _apply(content: bytearray, op: Op) -> None:
    if op.kind == "truncate":
        del content[op.at :]
        return
    content.extend(bytes(max(0, op.at - len(content))))
    content[op.at : op.at + len(op.data)] = op.data


def _surviving(told: Sequence[Op], luck: random.Random) -> Iterable[Op]:
    """None, all, all up to one that is torn, or any of them, each whole or in pieces."""
    way = luck.randrange(5)
    if way == 0:
        return
    last = luck.randrange(len(told) + 1) if way == 1 else len(told)
    for number, op in enumerate(told[: last + 1]):
        if way > 2 and luck.random() < 0.5:
            continue
        torn = number == last if way == 1 else way == 4
        yield from _pieces(op, luck) if torn and op.kind == "write" else (op,)


def _pieces(op: Op, luck: random.Random) -> Iterable[Op]:
    """Those sectors of a write that reached the disk."""
    sector = luck.choice(_SECTORS)
    edges = [op.at, *range((op.at // sector + 1) * sector, op.at + len(op.data), sector)]
    for start, end in zip(edges, [*edges[1:], op.at + len(op.data)], strict=True):
        if luck.random() < 0.5:
            yield Op("write", op.path, start, op.data[start - op.at : end - op.at])


def leave(record: Sequence[Op], folder: Path, luck: random.Random) -> None:
    """Writes into `folder` what the files told of in `record` may be when the power fails then.

    SQLite syncs the folder at the first sync of a file that it made, and when it is told to at a
    deletion; until then a name may stand for the file before, or for none.
    """
    now: dict[str, _File] = {}
    sure: dict[str, _File] = {}
    for op in record:
        if op.kind == "made":
            now[op.path] = _File()
        elif op.kind == "delete":
            now.pop(op.path, None)
            if op.at:
                sure = dict(now)
        elif op.kind in ("write", "truncate"):
            now.setdefault(op.path, _File(sure=True)).tell(op)
        elif op.kind == "sync" and op.path in now:
            file = now[op.path]
            file.sync()
            if not file.sure:
                file.sure, sure = True, dict(now)
    for path in {*now, *sure}:
        found = luck.choice((now, sure)).get(path)
        if found is not None:
            (folder / Path(path).name).write_bytes(found.after(luck))

"""A log on each store, and a session in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from searchloop.agent.log import EventLog


@pytest.fixture
def log(store: Path | str) -> Iterator[EventLog]:
    """An empty log, on each store."""
    with closing(EventLog(store)) as opened:
        yield opened


@pytest.fixture
def other(store: Path | str, log: EventLog) -> Iterator[EventLog]:
    """The same log, as another process has it."""
    with closing(EventLog(store)) as opened:
        yield opened


@pytest.fixture
def session(log: EventLog) -> str:
    """The id of an empty session."""
    return log.create_session(model="m").id

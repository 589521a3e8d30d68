"""Tests of this folder that are coroutine functions are played on a fast clock."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.house import play


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs such a test on the loop of `play`."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    play(pyfuncitem.obj(**{n: pyfuncitem.funcargs[n] for n in pyfuncitem._fixtureinfo.argnames}))
    return True


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One log for all tests of a file; dead processes need not say so in the output."""
    logging.getLogger("searchloop.agent.run.runner").disabled = True
    yield tmp_path_factory.mktemp("chaos")
    logging.getLogger("searchloop.agent.run.runner").disabled = False

"""The model of a question that names none: by setting, by habit, by what fits, or none at all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import BUILTIN, Environment, Settings
from searchloop.agent.settings.usual_model import FILE, Choice, UsualModel, best_of
from searchloop.agent.types import Capabilities, Loaded, ModelInfo
from tests.tables import each_row

GB = 2**30


def model(name: str, gb: float | None, *, tools: bool = True, **more: Any) -> ModelInfo:
    """An installed model whose weights have this size."""
    disk = None if gb is None else int(gb * GB)
    more = {"local": True, **more}
    return ModelInfo(f"own:{name}", capabilities=Capabilities(tools=tools), disk=disk, **more)


@each_row(
    ("models", "here", "chosen"),
    [
        ([], 16, BUILTIN),
        ([model("a", 5)], 16, "own:a"),
        ([model("a", 2), model("b", 5), model("c", 1)], 16, "own:b"),
        ([model("a", 2), model("b", 40)], 16, "own:a"),  # would not fit
        ([model("a", 2), model("b", 13)], 16, "own:a"),  # would, without a window
        ([model("a", 2), model("b", 40)], 64, "own:b"),
        ([model("a", 2), model("b", 40)], None, "own:b"),  # nobody knows
        ([model("a", 2), model("b", 5, tools=False)], 16, "own:a"),
        ([model("a", 40), model("b", 5, tools=False)], 16, "own:b"),
        ([model("a", 40), model("b", 50)], 16, BUILTIN),
        ([model("a", 2), model("b", 40, loaded=Loaded(size=1))], 16, "own:b"),  # it is there
        ([model("a", 2), model("b", 5, available=False)], 16, "own:a"),
        ([model("a", 2), model("b", 12, local=False)], 4, "own:b"),  # of another machine
        ([model("a", 2), model("b", 60, local=False)], 64, "own:a"),
        ([model("a", None), model("b", 40)], 16, "own:a"),
    ],
)
def test_the_best_that_fits(models: Sequence[ModelInfo], here: int | None, chosen: str) -> None:
    """The largest that calls tools, in the memory there is; the reason fits behind its name."""
    choice = best_of(models, here and here * GB)
    assert choice.model == chosen
    assert choice.by == ("none" if chosen == BUILTIN else "best")
    assert choice.why
    assert not choice.why.endswith(".")


class Asked:
    """Servers with these models; `gone` cannot be asked."""

    def __init__(self, home: Path, *models: ModelInfo, gone: str = "", **flags: str) -> None:
        layers = {"flag": {"SEARCHLOOP_HOME": str(home), **flags}}
        self._models, self._gone = models, gone
        self.times = 0
        own = Settings.load(Environment(layers))
        self.usual = UsualModel(own, self._check, self._list)

    def _check(self, name: str) -> None:
        if name == self._gone:
            raise ConfigError("missing_key", "There is no key.", "Set it.")

    async def _list(self) -> Sequence[ModelInfo]:
        self.times += 1
        return self._models

    def choose(self) -> Choice:
        """See UsualModel."""
        return asyncio.run(self.usual.choose())


def test_a_setting_wins_then_habit_then_what_fits(tmp_path: Path) -> None:
    """And a habit that cannot be kept, as its key is gone, gives way."""
    own = model("small", 0.1)
    first = Asked(tmp_path, own)
    assert (first.choose().model, first.times) == ("own:small", 1)
    first.usual.remember("own:small")
    first.usual.remember("cloud:big")
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0
    second = Asked(tmp_path, own)
    assert (second.choose(), second.times) == (Choice("cloud:big", "last", "used last"), 0)
    assert Asked(tmp_path, own, gone="cloud:big").choose().model == "own:small"
    named = Asked(tmp_path, own, SEARCHLOOP_MODEL="m:x").choose()
    assert named == Choice("m:x", "setting", "set by flag")


def test_what_nobody_chose_is_no_habit(tmp_path: Path) -> None:
    """Quotes only, for want of a model, must not stay once there is one; a wish for them does."""
    bare = Asked(tmp_path)
    assert bare.choose().model == BUILTIN
    bare.usual.remember(BUILTIN)
    later = Asked(tmp_path, model("small", 0.1))
    assert later.choose().model == "own:small"
    later.usual.remember(BUILTIN)
    assert Asked(tmp_path, model("small", 0.1)).choose() == Choice(BUILTIN, "last", "used last")


@pytest.mark.parametrize("text", [b"\xff", b"a:b\nc:d", b"x" * 999, b"\x1b[31m", b"", b"  "])
def test_a_broken_note_is_no_habit(tmp_path: Path, text: bytes) -> None:
    """What cannot be a name is not there."""
    (tmp_path / FILE).write_bytes(text)
    assert Asked(tmp_path).choose().by == "none"

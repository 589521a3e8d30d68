"""The documents name the engines there are."""

from __future__ import annotations

from scripts.engine_table import main, table
from searchloop.search_backend.engines import find_engines


def test_the_table_of_engines_is_the_code_of_today() -> None:
    """Whoever adds an engine runs scripts/engine_table.py."""
    assert main(["--check"]) == 0


def test_the_table_names_every_engine_and_every_setting() -> None:
    """A reader of the document sees all names that a key goes by."""
    text = table()
    for engine in find_engines().values():
        assert f"| `{engine.name}` |" in text
        for setting in engine.settings:
            assert f"`{setting.name}`" in text
        for name in engine.needs:
            assert f"`{name}`" in text
    assert "`BRAVE_API_KEY` or `BRAVE_SEARCH_API_KEY`" in text

"""config.toml changed by a program: the lines meant, no other, and never half a file."""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import ConfigError, StoreError
from searchloop.agent.settings.config_file import change_config

BEFORE = """\
# my settings
SEARCHLOOP_MODEL = "ollama:qwen3:8b" # the small one
"SEARCH_ENGINES" = "ddg"

[mine]
SEARCHLOOP_MODEL = "not this one"
"""


def test_only_the_lines_meant_change(tmp_path: Path) -> None:
    """Comments, order and tables stay; a new setting stands before the tables."""
    path = tmp_path / "config.toml"
    path.write_text(BEFORE, "utf-8")
    change_config(path, {"SEARCH_ENGINES": None, "SEARCHLOOP_MODEL": 'a"b\n', "NEW": "ü"})
    assert path.read_text("utf-8") == (
        '# my settings\nSEARCHLOOP_MODEL = "a\\"b\\n"\n\nNEW = "ü"\n'
        '[mine]\nSEARCHLOOP_MODEL = "not this one"\n'
    )
    assert path.stat().st_mode & 0o077 == 0
    assert [p.name for p in tmp_path.iterdir()] == ["config.toml"]


@given(st.dictionaries(st.sampled_from("ABCDE"), st.none() | st.text(max_size=20), max_size=5))
def test_what_was_written_is_read(changes: dict[str, str | None]) -> None:
    """Whatever the text, TOML gives it back, and the rest is as it was."""
    clean = {k: v and v.encode("utf-8", "replace").decode() for k, v in changes.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new" / "config.toml"
        change_config(path, {"A": "1", "Z": "2"})
        change_config(path, clean)
        wanted = {"A": "1", "Z": "2"} | clean
        kept = {name: value for name, value in wanted.items() if value is not None}
        assert tomllib.loads(path.read_text("utf-8")) == kept


@pytest.mark.parametrize("text", [b"A = \n", b'A = """\nB = 1\n"""\n', b"A = [\n1,\n]\n", b"\x80"])
def test_a_file_that_is_not_understood_is_left_alone(tmp_path: Path, text: bytes) -> None:
    """Broken, or a setting over several lines: refused, with every byte in place."""
    path = tmp_path / "config.toml"
    path.write_bytes(text)
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="cannot be changed"):
        change_config(path, {"A": "x"})
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """The remedy names what to do; nothing is lost."""
    (tmp_path / "file").write_text("")
    with pytest.raises((StoreError, ConfigError)):
        change_config(tmp_path / "file" / "config.toml", {"A": "x"})

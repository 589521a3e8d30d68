"""Settings of the backend come from a mapping, and a bad one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_backend.errors import ConfigError
from search_backend.settings import SETTINGS, Settings


def test_defaults(tmp_path: Path) -> None:
    """Without any setting: the default chain, online, in the home given."""
    settings = Settings.from_mapping({}, home=tmp_path)
    assert settings.engines[-1] == "library"
    assert "ddg" in settings.engines
    assert (settings.home, settings.offline) == (tmp_path, False)


def test_values_are_read(tmp_path: Path) -> None:
    """Blanks, case and repetition in the chain do not matter."""
    settings = Settings.from_mapping(
        {
            "SEARCH_ENGINES": " Library, ddg,library ,",
            "SEARCHLOOP_HOME": str(tmp_path / "x"),
            "SEARCHLOOP_OFFLINE": "Yes",
            "UNRELATED_API_KEY": "secret-value",
        },
        home=tmp_path,
    )
    assert settings.engines == ("library", "ddg")
    assert settings.home == tmp_path / "x"
    assert settings.offline
    assert "secret-value" not in repr(settings)
    assert "secret-value" not in settings.keys.values()


@pytest.mark.parametrize(
    ("name", "value"), [("SEARCH_ENGINES", "ddg,nope"), ("SEARCHLOOP_OFFLINE", "perhaps")]
)
def test_a_bad_setting_is_named(tmp_path: Path, name: str, value: str) -> None:
    """The error says which setting, and what would be right."""
    with pytest.raises(ConfigError, match=name) as failure:
        Settings.from_mapping({name: value}, home=tmp_path)
    assert failure.value.code == "config"
    assert failure.value.remedy


def test_every_setting_is_listed() -> None:
    """The list that the command line shows names each setting that is read here."""
    assert {name for name, _, _ in SETTINGS} == {
        "SEARCH_ENGINES",
        "SEARCHLOOP_HOME",
        "SEARCHLOOP_OFFLINE",
    }

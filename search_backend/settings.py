"""Settings of the search backend: the only place here that names environment variables.

Nothing reads `os.environ`; whoever starts the backend passes a mapping. Keys of engines are kept
for those variables that an engine names in its `needs`, so a new engine adds no field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from search_backend.engines import default_chain, find_engines
from search_backend.errors import ConfigError

# Name, default, what it does: the command line and .env.example show these.
SETTINGS: tuple[tuple[str, str, str], ...] = (
    ("SEARCH_ENGINES", "", "Order in which search engines are asked, e.g. ddg,library"),
    ("SEARCHLOOP_HOME", "", "Folder for the library (library.sqlite3) and other data"),
    ("SEARCHLOOP_OFFLINE", "", "1 = nothing may leave this machine"),
)
TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Settings:
    """What the backend was told. `engines` is the chain in order; `home` holds the library."""

    home: Path
    engines: tuple[str, ...]
    offline: bool = False
    # Keys never show up when settings are printed.
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, str], home: Path) -> Settings:
        """Read SEARCH_ENGINES, SEARCHLOOP_HOME, SEARCHLOOP_OFFLINE and the engines' own keys.

        `home` is the data directory unless SEARCHLOOP_HOME names another. Raises ConfigError that
        names the setting.
        """
        known = find_engines()
        needed = {name for engine in known.values() for name in engine.needs}
        keys = {
            name: mapping[name].strip() for name in sorted(needed) if mapping.get(name, "").strip()
        }
        chosen = mapping.get("SEARCHLOOP_HOME", "").strip()
        return cls(
            home=Path(chosen).expanduser() if chosen else home,
            engines=_chain(mapping.get("SEARCH_ENGINES", "")) or default_chain(known, keys),
            offline=_switch(mapping, "SEARCHLOOP_OFFLINE"),
            keys=keys,
        )


def _chain(raw: str) -> tuple[str, ...]:
    known = find_engines()
    names = tuple(dict.fromkeys(name.strip().lower() for name in raw.split(",") if name.strip()))
    for name in names:
        if name not in known:
            raise ConfigError(
                "config",
                f"SEARCH_ENGINES names an unknown engine: {name!r}.",
                f"Use a comma-separated list of: {', '.join(known)}.",
            )
    return names


def _switch(mapping: Mapping[str, str], name: str) -> bool:
    word = mapping.get(name, "").strip().lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise ConfigError(
            "config", f"{name} is neither on nor off: {word!r}.", f"Set {name} to 1 or 0."
        )
    return word in TRUE_WORDS

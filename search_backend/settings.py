"""Settings of the search backend: the only place here that names environment variables.

Nothing reads `os.environ`; whoever starts the backend passes a mapping. Values of engines are kept
for those variables that an engine declares in its `settings`, so a new engine adds no field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from search_backend.addresses import parse_ranges
from search_backend.domains import ANYWHERE, Rules, parse_rules
from search_backend.engines import default_chain, find_engines
from search_backend.errors import ConfigError, SearchBackendError
from search_backend.readers import LOCAL, find_services
from search_backend.types import Query

# Name, default, what it does: the command line and .env.example show these.
SETTINGS: tuple[tuple[str, str, str], ...] = (
    ("SEARCH_ENGINES", "", "Order in which search engines are asked, e.g. ddg,library"),
    ("SEARCH_FANOUT", "1", "How many engines are asked together, their results merged"),
    ("SEARCH_SECONDS", "10", "Longest time for one search"),
    (
        "SEARCH_CACHE_SECONDS",
        "300",
        "How long the same search gets the same answer, e.g. 300,exa=3600; 0 = never",
    ),
    (
        "SEARCH_PAGE_SECONDS",
        "900",
        "How long a page that does not say it may be shown again; 0 = fetch it each time",
    ),
    ("SEARCH_CACHE_MB", "64", "Size of the file that keeps answers and pages; 0 = memory only"),
    ("SEARCH_RATES", "", "Requests a second that your plans allow, e.g. brave=20"),
    (
        "SEARCH_CLIENT_RATE",
        "120",
        "Requests a minute for each client of a backend that others can reach; 0 = any number",
    ),
    ("SEARCH_READERS", "local", "Order in which readers try a page, e.g. local,jina"),
    ("SEARCH_ALLOWED_DOMAINS", "", "Search and read only these sites, e.g. example.org,gov.uk"),
    ("SEARCH_BLOCKED_DOMAINS", "", "Never use these sites"),
    ("SEARCH_COUNTRY", "", "Country that results are meant for, two letters"),
    ("SEARCH_ALLOW_RANGES", "", "Private ranges that names may lead to, e.g. 198.18.0.0/15"),
    ("SEARCHLOOP_HOME", "", "Folder for the library (library.sqlite3) and other data"),
    ("SEARCHLOOP_OFFLINE", "", "1 = nothing may leave this machine"),
)
_FRESH = "SEARCH_CACHE_SECONDS"
TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Settings:
    """What the backend was told. `engines` is the chain in order; `home` holds the library.

    `fanout` engines are asked together; a search takes at most `seconds`; answers are kept for
    `cache_seconds`, those of an engine in `fresh` for its own time, and in a file of `cache_mb`
    (0 = in memory only), pages for `page_seconds` if they do not say; `rates` are requests a second
    by engine, where the user knows better;
    `client_rate` is how often one client may ask in a minute where others can reach the backend;
    `readers` try a page in that order; `rules` and `country` hold for every request; `allow_ranges`
    are for networks whose names lead to stand-in addresses (see `addresses`).
    """

    home: Path
    engines: tuple[str, ...]
    offline: bool = False
    # Keys never show up when settings are printed.
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    fanout: int = 1
    seconds: float = 10.0
    cache_seconds: float = 0.0
    rates: Mapping[str, float] = field(default_factory=dict)
    client_rate: float = 120.0
    fresh: Mapping[str, float] = field(default_factory=dict)
    cache_mb: float = 0.0
    page_seconds: float = 900.0
    readers: tuple[str, ...] = (LOCAL,)
    rules: Rules = ANYWHERE
    country: str | None = None
    allow_ranges: tuple[str, ...] = ()

    @property
    def cache_bytes(self) -> int:
        """The size of the file."""
        return int(self.cache_mb * 2**20)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, str], home: Path) -> Settings:
        """Read SETTINGS and the engines' own settings, under any of their names.

        `home` is the data directory unless SEARCHLOOP_HOME names another. Raises ConfigError that
        names the setting.
        """
        known = find_engines()
        keys = _keys(mapping)
        chosen = mapping.get("SEARCHLOOP_HOME", "").strip()
        parts = mapping.get(_FRESH, "").split(",")
        usual = next((part for part in parts if "=" not in part), "")
        own = [part for part in parts if "=" in part]
        return cls(
            home=Path(chosen).expanduser() if chosen else home,
            engines=_names(mapping, "SEARCH_ENGINES", known) or default_chain(known, keys),
            offline=_switch(mapping, "SEARCHLOOP_OFFLINE"),
            keys=keys,
            fanout=int(_number(mapping, "SEARCH_FANOUT", 1, 20)),
            seconds=_number(mapping, "SEARCH_SECONDS", 0.1, 120),
            cache_seconds=_number({_FRESH: usual}, _FRESH, 0, 86_400),
            rates=_by_engine("SEARCH_RATES", mapping.get("SEARCH_RATES", "")),
            client_rate=_number(mapping, "SEARCH_CLIENT_RATE", 0, 1_000_000),
            fresh=_by_engine(_FRESH, ",".join(own)),
            cache_mb=_number(mapping, "SEARCH_CACHE_MB", 0, 100_000),
            page_seconds=_number(mapping, "SEARCH_PAGE_SECONDS", 0, 86_400),
            readers=_names(mapping, "SEARCH_READERS", (LOCAL, *find_services())) or (LOCAL,),
            rules=Rules(
                _domains(mapping, "SEARCH_ALLOWED_DOMAINS"),
                _domains(mapping, "SEARCH_BLOCKED_DOMAINS"),
            ),
            country=_country(mapping.get("SEARCH_COUNTRY", "")),
            allow_ranges=_ranges(_parts(mapping, "SEARCH_ALLOW_RANGES")),
        )

    def held(self, query: Query) -> Query:
        """`query` inside the rules of these settings. Raises SearchBackendError when nothing is
        inside both."""
        if self.rules == ANYWHERE and not self.country:
            return query
        rules = Rules(query.allowed_domains, query.blocked_domains).within(self.rules)
        return replace(
            query,
            allowed_domains=rules.allowed,
            blocked_domains=rules.blocked,
            country=query.country or self.country,
        )


def _keys(mapping: Mapping[str, str]) -> dict[str, str]:
    """Values of the parts' settings by their first name; those without value and default left
    out."""
    found = {}
    engines, services = find_engines().values(), find_services().values()
    declared = [
        *(s for e in engines for s in e.settings),
        *(s for r in services for s in r.settings),
    ]
    for setting in declared:
        names = (setting.name, *setting.aliases)
        value = next((v for name in names if (v := mapping.get(name, "").strip())), "")
        if value or setting.default:
            found[setting.name] = value or setting.default
    return found


def _number(mapping: Mapping[str, str], name: str, least: float, most: float) -> float:
    default = next(default for known, default, _ in SETTINGS if known == name)
    raw = mapping.get(name, "").strip() or default
    try:
        value = float(raw)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise ConfigError(
            "config",
            f"{name} is not a number from {least:g} to {most:g}: {raw[:40]!r}.",
            f"Set {name} to such a number, or leave it out ({default}).",
        )
    return value


def _by_engine(setting: str, raw: str) -> dict[str, float]:
    """Numbers by engine, as in `brave=20,tavily=1.5`."""
    known = find_engines()
    numbers = {}
    for pair in (part.strip() for part in raw.split(",") if part.strip()):
        name, _, number = (part.strip() for part in pair.partition("="))
        if name not in known or not re.fullmatch(r"\d{1,6}(\.\d{1,4})?", number):
            raise ConfigError(
                "config",
                f"{setting} has a part that cannot be used: {pair[:60]!r}.",
                f"Write ENGINE=NUMBER, e.g. {setting}=brave=20,tavily=1.5.",
            )
        numbers[name] = float(number)
    return numbers


def _parts(mapping: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in mapping.get(name, "").split(",") if part.strip())


def _names(mapping: Mapping[str, str], name: str, known: Iterable[str]) -> tuple[str, ...]:
    """A list of parts of one kind, each named once."""
    names = tuple(dict.fromkeys(part.lower() for part in _parts(mapping, name)))
    for unknown in (one for one in names if one not in known):
        raise ConfigError(
            "config",
            f"{name} names what there is not: {unknown[:60]!r}.",
            f"Use a comma-separated list of: {', '.join(known)}.",
        )
    return names


def _domains(mapping: Mapping[str, str], name: str) -> tuple[str, ...]:
    try:
        return parse_rules(_parts(mapping, name), name)
    except SearchBackendError as error:
        raise ConfigError("config", error.message, error.remedy) from error


def _country(raw: str) -> str | None:
    country = raw.strip().lower()
    if country and not re.fullmatch(r"[a-z]{2}", country):
        raise ConfigError(
            "config", f"SEARCH_COUNTRY is no country: {raw[:40]!r}.", "Write two letters, e.g. DE."
        )
    return country or None


def _ranges(ranges: tuple[str, ...]) -> tuple[str, ...]:
    parse_ranges(ranges)
    return ranges


def _switch(mapping: Mapping[str, str], name: str) -> bool:
    word = mapping.get(name, "").strip().lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise ConfigError(
            "config", f"{name} is neither on nor off: {word!r}.", f"Set {name} to 1 or 0."
        )
    return word in TRUE_WORDS

"""Settings of the search backend: the only place here that names environment variables.

Nothing reads `os.environ`; the caller passes a mapping. Engines and readers declare their own
settings, so a new one adds no field here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from searchloop.analysis.told import one_of
from searchloop.search_backend.engines import Engine, default_chain, find_engines, titles
from searchloop.search_backend.fetch.host_check import ANYWHERE, Rules, parse_rules
from searchloop.search_backend.fetch.ip_addresses import parse_ranges
from searchloop.search_backend.readers import LOCAL, find_services
from searchloop.search_backend.types import Query, SearchBackendError, SettingError

# Name, default, what it does: the command line and .env.example show these.
SETTINGS: tuple[tuple[str, str, str], ...] = (
    ("SEARCH_ENGINES", "", "Order in which search engines are asked, e.g. ddg,library"),
    ("SEARCH_READERS", "local", "Order in which readers try a page, e.g. local,jina"),
    ("SEARCH_ALLOWED_DOMAINS", "", "Search and read only these sites, e.g. example.org,gov.uk"),
    ("SEARCH_BLOCKED_DOMAINS", "", "Never use these sites"),
    ("SEARCH_COUNTRY", "", "Country that results are meant for, two letters"),
    ("SEARCH_ALLOW_RANGES", "", "Private ranges that names may lead to, e.g. 198.18.0.0/15"),
    ("SEARCHLOOP_HOME", "", "Folder for the library (library.sqlite3) and other data"),
    ("SEARCHLOOP_OFFLINE", "", "1 = nothing may leave this machine"),
)
SITES = "sites"  # in a chain: official sites are asked when it has failed
CACHE_SECONDS = 300.0  # the same search gets the same answer
TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Settings of one backend. `engines` is the chain in order; `home` contains the library.

    A search takes at most `seconds`; answers are kept in memory for `cache_seconds`. `readers` try
    a page in that order. `rules` and `country` restrict every request; `allow_ranges` are private
    addresses to which names may lead (see `addresses`). With `routed`, official sites are asked
    when the chain has failed: unless the user has written one without.
    """

    home: Path
    engines: tuple[str, ...]
    offline: bool = False
    # Keys never show up when settings are printed.
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    seconds: float = 10.0
    cache_seconds: float = 0.0
    readers: tuple[str, ...] = (LOCAL,)
    rules: Rules = ANYWHERE
    country: str | None = None
    allow_ranges: tuple[str, ...] = ()
    routed: bool = False

    @classmethod
    def from_mapping(
        cls, mapping: Mapping[str, str], home: Path, own: Mapping[str, Engine] | None = None
    ) -> SearchSettings:
        """Reads SETTINGS and the engines' own settings, under any of their names.

        `home` is the data folder unless SEARCHLOOP_HOME names another; `own` are engines of the
        caller by name, which are asked only where SEARCH_ENGINES or `with_engines` names them.
        Raises SettingError.
        """
        known = {**find_engines(), **(own or {})}
        keys = _keys(mapping, known)
        chosen = mapping.get("SEARCHLOOP_HOME", "").strip()
        named = _names(mapping, "SEARCH_ENGINES", (*known, SITES))
        return cls(
            home=Path(chosen).expanduser() if chosen else home,
            engines=tuple(n for n in named if n != SITES) or default_chain(find_engines(), keys),
            routed=not named or SITES in named,
            offline=_switch(mapping, "SEARCHLOOP_OFFLINE"),
            keys=keys,
            cache_seconds=CACHE_SECONDS,
            readers=_names(mapping, "SEARCH_READERS", (LOCAL, *find_services())) or (LOCAL,),
            rules=Rules(
                _domains(mapping, "SEARCH_ALLOWED_DOMAINS"),
                _domains(mapping, "SEARCH_BLOCKED_DOMAINS"),
            ),
            country=_country(mapping.get("SEARCH_COUNTRY", "")),
            allow_ranges=_ranges(mapping),
        )

    def with_engines(self, names: Sequence[str], own: Iterable[str]) -> SearchSettings:
        """Returns settings with another chain, in whose place no official site is asked.

        Raises SettingError for a name that is neither an engine's nor in `own`.
        """
        known = (*find_engines(), *own)
        checked = _names({"engines": ",".join(names)}, "engines", known)
        return replace(self, engines=checked, routed=False)

    def held(self, query: Query) -> Query:
        """Returns `query` within the rules of these settings. Raises SearchBackendError if they
        exclude each other."""
        if self.rules == ANYWHERE and not self.country:
            return query
        rules = Rules(query.allowed_domains, query.blocked_domains).within(self.rules)
        return replace(
            query,
            allowed_domains=rules.allowed,
            blocked_domains=rules.blocked,
            country=query.country or self.country,
        )


def _keys(mapping: Mapping[str, str], known: Mapping[str, Engine]) -> dict[str, str]:
    """Returns the values of engines' and readers' settings by name, without empty ones."""
    found = {}
    engines, services = known.values(), find_services().values()
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


def _parts(mapping: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in mapping.get(name, "").split(",") if part.strip())


def _names(mapping: Mapping[str, str], name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Parses a list of known names, without repetitions."""
    names = tuple(dict.fromkeys(part.lower() for part in _parts(mapping, name)))
    for unknown in (one for one in names if one not in known):
        what = f"{name} names {unknown[:60]!r}, which there is not."
        raise SettingError("config", what, one_of(unknown, known, titles()))
    return names


def _domains(mapping: Mapping[str, str], name: str) -> tuple[str, ...]:
    try:
        return parse_rules(_parts(mapping, name), name)
    except SearchBackendError as error:
        raise SettingError("config", error.message, error.remedy) from error


def _country(raw: str) -> str | None:
    country = raw.strip().lower()
    if country and not re.fullmatch(r"[a-z]{2}", country):
        what = f"SEARCH_COUNTRY is no country: {raw[:40]!r}."
        raise SettingError("config", what, "Write two letters, e.g. DE.")
    return country or None


def _ranges(mapping: Mapping[str, str]) -> tuple[str, ...]:
    ranges = _parts(mapping, "SEARCH_ALLOW_RANGES")
    try:
        parse_ranges(ranges)
    except SettingError as error:
        words = f"SEARCH_ALLOW_RANGES: {error.message}"
        raise SettingError("config", words, error.remedy) from error
    return ranges


def _switch(mapping: Mapping[str, str], name: str) -> bool:
    word = mapping.get(name, "").strip().lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        what = f"{name} is neither on nor off: {word!r}."
        raise SettingError("config", what, f"Set {name} to 1 or 0.")
    return word in TRUE_WORDS

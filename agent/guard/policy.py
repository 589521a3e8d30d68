"""The user's rules for calls: allow, confirm or deny, by tool, effect, server, domain and path.

Of the rules in `policy.json` that match a call, deny wins over confirm and confirm over allow.
Where none matches, the user confirms what changes something or comes from an MCP server.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from searchloop.agent.errors import ConfigError
from searchloop.agent.guard.egress import Mixed
from searchloop.agent.search.switch import Review
from searchloop.agent.settings.keys import write_private
from searchloop.agent.tools import Tool
from searchloop.agent.types import Effect, Message

Action = Literal["allow", "confirm", "deny"]
FILE = "policy.json"
_RANK: Mapping[Action, int] = {"allow": 0, "confirm": 1, "deny": 2}
_PLACES = ("path", "file", "folder", "directory", "dir", "source", "destination", "target")
_MOST = 500
_DOMAIN = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; what is None matches everything. Patterns are those of a shell: `*`, `?`, `[a]`."""

    action: Action
    tool: str | None = None
    effect: Effect | None = None
    server: str | None = None
    domain: str | None = None
    path: str | None = None

    def matches(self, tool: Tool, places: Places) -> bool:
        """Returns whether the rule applies; an allowing rule must cover every place in the call."""
        return (
            self.effect in (None, tool.spec.effect)
            and fnmatchcase(tool.spec.name, self.tool or "*")
            and fnmatchcase(tool.server or "", self.server or "*")
            and self._covers(self.domain, places.hosts, _in_domain)
            and self._covers(self.path, places.paths, _under)
        )

    def _covers(self, pattern: str | None, found: tuple[str, ...], match: Any) -> bool:
        if pattern is None:
            return True
        hits = [match(place, pattern) for place in found]
        return bool(hits) and (all(hits) if self.action == "allow" else any(hits))


@dataclass(frozen=True, slots=True)
class Places:
    """The hosts and paths in a call's arguments, at any depth."""

    hosts: tuple[str, ...]
    paths: tuple[str, ...]

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Places:
        """Collects the hosts of all URLs and the values of arguments named like a path."""
        hosts, paths = [], []
        for key, value in _leaves(arguments):
            if "://" in value:
                hosts.append(_host(value))
            elif any(word in key.lower() for word in _PLACES):
                paths.append(os.path.normpath(value.replace("\\", "/")))
        return cls(tuple(hosts), tuple(paths))


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules, whether to show queries before they leave, and the choice for mixed texts."""

    rules: tuple[Rule, ...] = ()
    review_queries: bool = False
    private_and_untrusted: Mixed = "ask"

    def verdict(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Action, str]:
        """Returns the action for a call, and the reason in words for the user."""
        places = Places.of(arguments)
        matching = [rule for rule in self.rules if rule.matches(tool, places)]
        if matching:
            rule = max(matching, key=lambda rule: _RANK[rule.action])
            named = {k: v for k, v in asdict(rule).items() if v is not None and k != "action"}
            which = ", ".join(f"{k} {v}" for k, v in named.items()) or "every call"
            return rule.action, f"Your rule for {which} says: {rule.action}."
        if tool.web and self.review_queries:
            return "confirm", "You want to see what is looked up before it leaves."
        if tool.origin == "mcp" and tool.spec.effect != "read":
            return "confirm", f"It goes to the MCP server {tool.server}."
        changes = {"write": "It changes something.", "exec": "It runs something."}
        said = changes.get(tool.spec.effect, "")
        return ("confirm" if said else "allow"), said

    def review(self, *, private: bool) -> Review:
        """Returns the facts for the switch; `private`: the user's data is in the chat."""
        return Review(self.review_queries, private, self.private_and_untrusted == "allow")

    def as_dict(self) -> dict[str, Any]:
        """Returns the JSON object of the file."""
        rules = [{k: v for k, v in asdict(r).items() if v is not None} for r in self.rules]
        return {**asdict(self), "rules": rules}

    @classmethod
    def of(cls, data: Any) -> Policy:
        """Reads the JSON object. Raises ConfigError that names the mistake and its rule."""
        if not isinstance(data, Mapping):
            raise _bad("it is not an object")
        unknown = set(data) - {f.name for f in fields(cls)}
        if unknown:
            raise _bad(f"it has no {sorted(unknown)[0]!r}")
        rules = data.get("rules", [])
        if not isinstance(rules, list) or len(rules) > _MOST:
            raise _bad(f"rules is no list of at most {_MOST}")
        review, mixed = data.get("review_queries", False), data.get("private_and_untrusted", "ask")
        if not isinstance(review, bool):
            raise _bad("review_queries is neither true nor false")
        if mixed not in get_args(Mixed):
            raise _bad(f"private_and_untrusted is not one of {', '.join(get_args(Mixed))}")
        return cls(tuple(_rule(i, rule) for i, rule in enumerate(rules, 1)), review, mixed)


DEFAULT_POLICY = Policy()


def holds_private(messages: Iterable[Message]) -> bool:
    """Returns whether a tool result among these messages holds the user's own data."""
    return any(m.details.get("private") for m in messages if m.role == "tool")


def load_policy(home: Path) -> Policy:
    """Reads the user's policy, or returns the default. Raises ConfigError for a broken file."""
    path = home / FILE
    try:
        return Policy.of(json.loads(path.read_text("utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return DEFAULT_POLICY
    except (OSError, ValueError, RecursionError) as error:
        what = f"{path} cannot be read: {error}."
        raise ConfigError("bad_policy", what, "Correct it, or remove it.") from error
    except ConfigError as error:
        raise ConfigError("bad_policy", f"{path}: {error.message}", error.remedy) from error


def save_policy(home: Path, policy: Policy) -> None:
    """Writes the file atomically. Raises StoreError."""
    write_private(home / FILE, json.dumps(policy.as_dict(), indent=1, ensure_ascii=False))


def _rule(number: int, data: Any) -> Rule:
    where = f"rule {number}"
    if not isinstance(data, Mapping):
        raise _bad(f"{where} is not an object")
    unknown = set(data) - {f.name for f in fields(Rule)}
    if unknown:
        raise _bad(f"{where} has no {sorted(unknown)[0]!r}")
    if data.get("action") not in get_args(Action):
        raise _bad(f"the action of {where} is not one of {', '.join(get_args(Action))}")
    if data.get("effect") not in (None, *get_args(Effect)):
        raise _bad(f"the effect of {where} is not one of {', '.join(get_args(Effect))}")
    for name, value in data.items():
        if not isinstance(value, str) or not 0 < len(value) <= 500:
            raise _bad(f"{name} of {where} is not a text of 1 to 500 characters")
    domain = data.get("domain")
    if domain is not None and not (_DOMAIN.fullmatch(domain) and _host(f"https://{domain}")):
        raise _bad(f"the domain of {where} is none: write example.org, without scheme and path")
    return Rule(**cast(dict[str, Any], dict(data)))


def _bad(what: str) -> ConfigError:
    return ConfigError("bad_policy", f"The policy is not valid: {what}.", "Correct it.")


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner, key)
    elif isinstance(value, str):
        yield key, value


def _host(url: str) -> str:
    try:
        host = (urlsplit(url.strip()).hostname or "").rstrip(".").lower()
        return host if host.isascii() else host.encode("idna").decode("ascii")
    except ValueError:
        return ""


def _in_domain(host: str, domain: str) -> bool:
    wanted = _host(f"https://{domain}")
    return host == wanted or host.endswith(f".{wanted}")


def _under(path: str, pattern: str) -> bool:
    pattern = pattern.rstrip("/")
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}/*")

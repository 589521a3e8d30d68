"""What the user has laid down about calls: allow, confirm or deny, by tool, effect, server, place.

Rules stand in `policy.json` in SEARCHLOOP_HOME:

    {"review_queries": false, "private_and_untrusted": "ask",
     "rules": [{"action": "allow", "tool": "create_file", "path": "notes/*"},
               {"action": "deny", "server": "github", "tool": "*delete*"},
               {"action": "confirm", "effect": "network", "domain": "example.org"}]}

Of the rules that match a call, deny wins over confirm and confirm over allow. Where none matches:
reading and searching are allowed, whatever changes something or comes from an MCP server is
confirmed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from agent.egress import Mixed
from agent.errors import ConfigError
from agent.private_file import write_private
from agent.tools import Tool
from agent.types import Effect

Action = Literal["allow", "confirm", "deny"]
Held = Literal["review", "private"]
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
        """Whether the rule speaks of this call.

        A rule that allows must cover every place that a call names, one that forbids any of them.
        """
        spec = tool.spec
        if self.effect is not None and self.effect != spec.effect:
            return False
        if self.tool is not None and not fnmatchcase(spec.name, self.tool):
            return False
        if self.server is not None and not fnmatchcase(tool.server or "", self.server):
            return False
        return self._covers(self.domain, places.hosts, _in_domain) and self._covers(
            self.path, places.paths, _under
        )

    def _covers(self, pattern: str | None, found: tuple[str, ...], match: Any) -> bool:
        if pattern is None:
            return True
        hits = [match(place, pattern) for place in found]
        return bool(hits) and (all(hits) if self.action == "allow" else any(hits))


@dataclass(frozen=True, slots=True)
class Places:
    """The hosts and paths that a call names, wherever in its arguments."""

    hosts: tuple[str, ...]
    paths: tuple[str, ...]

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Places:
        """Hosts of all URLs; paths of arguments named like one."""
        hosts, paths = [], []
        for key, value in _leaves(arguments):
            if "://" in value:
                hosts.append(_host(value))
            elif any(word in key.lower() for word in _PLACES):
                paths.append(os.path.normpath(value.replace("\\", "/")))
        return cls(tuple(hosts), tuple(paths))


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules, and two switches: show queries before they leave; what to do about a mixture."""

    rules: tuple[Rule, ...] = ()
    review_queries: bool = False
    private_and_untrusted: Mixed = "ask"

    def verdict(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Action, str]:
        """What is to happen with a call, and why, in words for the user."""
        places = Places.of(arguments)
        matching = [rule for rule in self.rules if rule.matches(tool, places)]
        if matching:
            rule = max(matching, key=lambda rule: _RANK[rule.action])
            said = {k: v for k, v in asdict(rule).items() if v is not None and k != "action"}
            which = ", ".join(f"{k} {v}" for k, v in said.items()) or "every call"
            return rule.action, f"Your rule for {which} says: {rule.action}."
        if tool.web and self.review_queries:
            return "confirm", "You want to see what is looked up before it leaves."
        if tool.origin == "mcp" and tool.spec.effect != "read":
            return "confirm", f"It goes to the MCP server {tool.server}."
        if tool.spec.effect == "write":
            return "confirm", "It changes something."
        if tool.spec.effect == "exec":
            return "confirm", "It runs something."
        return "allow", ""

    def held_back(self, *, private: bool) -> Held | None:
        """Why a model may not search by itself, which nobody can look at before it leaves.

        `private`: whether the user's own data is in the conversation.
        """
        if self.review_queries:
            return "review"
        return "private" if private and self.private_and_untrusted != "allow" else None

    def as_dict(self) -> dict[str, Any]:
        """As it stands in the file."""
        rules = [{k: v for k, v in asdict(r).items() if v is not None} for r in self.rules]
        return {
            "review_queries": self.review_queries,
            "private_and_untrusted": self.private_and_untrusted,
            "rules": rules,
        }

    @classmethod
    def of(cls, data: Any) -> Policy:
        """From JSON. Raises ConfigError that names what is wrong, and in which rule."""
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


def load_policy(home: Path) -> Policy:
    """The user's policy; the default when there is none. Raises ConfigError for a broken one."""
    path = home / FILE
    try:
        return Policy.of(json.loads(path.read_text("utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return DEFAULT_POLICY
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            "bad_policy", f"{path} cannot be read: {error}.", "Correct it, or remove it."
        ) from error
    except ConfigError as error:
        raise ConfigError("bad_policy", f"{path}: {error.message}", error.remedy) from error


def save_policy(home: Path, policy: Policy) -> None:
    """Writes the file whole or not at all. Raises StoreError."""
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

"""The guard: decides whether a call that fits its schema may run.

It checks the session as it is now, what would leave (`egress`) and the user's rules: allow, confirm
or deny, by tool, effect, server, domain and path. Of the rules in `policy.json` that match a call,
deny wins over confirm and confirm over allow. Where none matches, the user confirms what changes
something or comes from an MCP server.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

from searchloop.agent.calls.arguments import coerced
from searchloop.agent.errors import ConfigError, ToolError
from searchloop.agent.guard.approvals import (
    ApprovalAnswer,
    Approvals,
    Approve,
    Decide,
    WorkFile,
    approval_key,
    decided,
    declined,
)
from searchloop.agent.guard.egress import Egress, Exposure, Finding, Mixed, Secrets, leaves
from searchloop.agent.log import EventLog
from searchloop.agent.log.session import Session
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.search.switch import Review, refused, withdrawn
from searchloop.agent.settings import Settings
from searchloop.agent.settings.private_files import read_object, write_object
from searchloop.agent.settings.secrets import secrets_of
from searchloop.agent.tools import ALLOWED, Tool, ToolSource, definition, object_schema
from searchloop.agent.types import Effect, Emit, Message, Request, StreamEvent, Streams, ToolCall
from searchloop.analysis.characters import INVISIBLE, named
from searchloop.analysis.schema_check import problems_with
from searchloop.analysis.secret_files import plain_name

Action = Literal["allow", "confirm", "deny"]
FILE = "policy.json"
_RANK: Mapping[Action, int] = {"allow": 0, "confirm": 1, "deny": 2}
_PLACES = ("path", "file", "folder", "directory", "dir", "source", "destination", "target")
_MOST = 500
_DOMAIN = re.compile(r"[\w.-]+")
_AUTHORITY = re.compile(r":[/\\]{2,9}([^/\\?#\s]+)")
_NAME = re.compile(r"(?<![\w-])(?:[\w-]{1,63}\.)+[\w-]{1,63}")
_TEXT = {"type": "string", "minLength": 1, "maxLength": _MOST}
_RULE = object_schema(
    {
        "action": {"enum": list(get_args(Action))},
        "effect": {"enum": list(get_args(Effect))},
        **dict.fromkeys(("tool", "server", "domain", "path"), _TEXT),
    },
    "action",
)
_POLICY = object_schema(
    {
        "rules": {"type": "array", "items": {"type": "object"}, "maxItems": _MOST},
        "review_queries": {"type": "boolean"},
        "private_and_untrusted": {"enum": list(get_args(Mixed))},
    }
)


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
        """Returns whether the rule applies; an allowing rule must cover every place in the call.

        Any other holds for a host that is only mentioned, and for other spellings of a path.
        """
        hosts = places.hosts
        paths = places.paths + (() if tool.origin == "ours" else places.like_paths)
        if self.action != "allow":
            out = tool.origin == "mcp" or tool.spec.effect in ("network", "exec")
            hosts += places.mentioned() if self.domain and out and not tool.web else ()
            paths += tuple("/".join(map(plain_name, path.split("/"))) for path in paths)
        return (
            self.effect in (None, tool.spec.effect)
            and fnmatchcase(tool.spec.name, self.tool or "*")
            and fnmatchcase(tool.server or "", self.server or "*")
            and self._covers(self.domain, hosts, _in_domain)
            and self._covers(self.path, paths, _under)
        )

    def _covers(self, pattern: str | None, found: tuple[str, ...], match: Any) -> bool:
        if pattern is None:
            return True
        loose = "/".join(map(plain_name, pattern.split("/")))
        if self.action == "allow":
            return bool(found) and all(match(place, pattern) for place in found)
        return any(match(place, pattern) or match(place, loose) for place in found)


class Places(NamedTuple):
    """The hosts and paths in a call's arguments, what only looks like a path, and all text."""

    hosts: tuple[str, ...]
    paths: tuple[str, ...]
    like_paths: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Places:
        """Collects them."""
        hosts, texts = list[str](), list[str]()
        paths: tuple[list[str], list[str]] = ([], [])
        for key, value in leaves(arguments):
            text = INVISIBLE.sub("", normalize("NFKC", unquote(value)))
            texts.append(text)
            for form in {text, re.sub(r"[\t\r\n]", "", text)}:  # which clients drop
                hosts += (_host(f"//{each}") for each in _AUTHORITY.findall(form))
            local = value.removeprefix("file://") if value.startswith("file:") else value
            named = any(word in key.lower() for word in _PLACES)
            if local and "://" not in local and (named or _like_path(local)):
                paths[not named].append(os.path.normpath(local.replace("\\", "/")))
        return cls(tuple(hosts), tuple(paths[0]), tuple(paths[1]), " ".join(texts))

    def mentioned(self) -> tuple[str, ...]:
        """Returns all that looks like the name of a host."""
        return tuple(_host(f"//{name}") for name in _NAME.findall(self.text))


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules, whether to show queries before they leave, and the choice for mixed texts."""

    rules: tuple[Rule, ...] = ()
    review_queries: bool = False
    private_and_untrusted: Mixed = "ask"

    def decide(
        self, tool: Tool, arguments: Mapping[str, Any], allowed: bool = False
    ) -> tuple[Action, str]:
        """Returns the action for a call, and why; rules hold also where changes are `allowed`."""
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
        where = ", ".join(places.paths)[:_MOST]
        changes = f"It writes to {where}." if where else "It changes something outside this chat."
        words = {} if allowed else {"write": changes, "exec": "It runs a program."}
        said = words.get(tool.spec.effect, "")
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
        if wrong := problems_with(data, _POLICY, "policy"):
            raise _bad(wrong)
        rules = data.get("rules", [])
        for number, rule in enumerate(rules, 1):
            if wrong := problems_with(rule, _RULE) or _odd(rule):
                raise _bad(f"rule {number}: {wrong}")
        return cls(**{**data, "rules": tuple(Rule(**rule) for rule in rules)})


DEFAULT_POLICY = Policy()


def holds_private(messages: Iterable[Message]) -> bool:
    """Returns whether these messages hold the user's own data: private results, attached files."""
    return any(m.details.get("private") if m.role == "tool" else m.attachments for m in messages)


def load_policy(home: Path) -> Policy:
    """Reads the user's policy, or returns the default. Raises ConfigError for a broken file."""
    path = home / FILE
    data = read_object(path, "bad_policy", str(path))
    try:
        return DEFAULT_POLICY if data is None else Policy.of(data)
    except ConfigError as error:
        raise ConfigError("bad_policy", f"{path}: {error.message}", error.remedy) from error


def save_policy(home: Path, policy: Policy) -> None:
    """Writes the file atomically. Raises StoreError."""
    write_object(home / FILE, policy.as_dict())


def _like_path(text: str) -> bool:
    parts = re.split(r"[/\\]", text, maxsplit=1)
    rooted = len(parts) > 1 and (parts[0] in ("", "~", ".", "..") or parts[0].endswith(":"))
    return (rooted and "\n" not in text) or (len(parts) > 1 and not re.search(r"\s", text))


def _odd(rule: Mapping[str, str]) -> str | None:
    """Says what is wrong with the domain of a rule."""
    domain = rule.get("domain", "x")
    if not _DOMAIN.fullmatch(domain) or not _host(f"https://{domain}"):
        return "its domain is none: write example.org, without scheme and path."
    return None


def _bad(what: str) -> ConfigError:
    return ConfigError("bad_policy", f"The policy is not valid: {what}", "Correct it.")


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


Ask = Callable[[Mapping[str, Any], Emit], Awaitable[ApprovalAnswer]]
_ROUNDS = 5  # how often changed arguments may be wrong before that counts as a no


@dataclass(slots=True)
class Guard:
    """Guards the calls of one run; `live` reads the session anew, `always` lasting approvals."""

    policy: Policy
    egress: Callable[[], Egress]
    live: Callable[[], Session]
    ask: Ask
    always: Callable[[], set[str]]
    approve: Approve = "ask"
    messages: Sequence[Message] = ()
    stays: bool = False  # its searches never leave this machine: the web's switch stops none
    _denied: set[str] = field(default_factory=set)

    async def permit(self, call: ToolCall, tool: Tool, emit: Emit) -> ToolCall:
        """Returns the call as it may run; raises ToolError, in words for the model, if not."""
        if tool.spec.effect == "read" and tool.origin != "mcp" and not self.policy.rules:
            return call  # no check below applies
        self._check_live(call, tool)
        finding, why = await self._why(call, tool)
        if not why:
            return call
        key = approval_key(call.name, call.arguments, definition(tool))
        if key in self._denied:
            raise declined("The user has already said no to this very call.")
        if key in self.always():
            return call
        permitted = await self._asked(call, tool, emit, finding, why)
        self._check_live(permitted, tool)  # the user may have taken their time
        return permitted

    def _check_live(self, call: ToolCall, tool: Tool) -> None:
        now = self.live()
        if tool.spec.effect not in ALLOWED[now.mode]:
            raise ToolError("not_allowed", f"{call.name} is not allowed in {now.mode} mode.")
        if tool.web and not self.stays and (why := refused(now.search)):
            raise ToolError("search_off", why)

    async def _found(self, tool: Tool, arguments: Mapping[str, Any]) -> Finding | None:
        """Returns the egress finding; what stays on this machine may hold whatever it likes.

        An address that the session has not met is asked about wherever it leads.
        """
        finding = await asyncio.to_thread(self.egress().look, tool, arguments)
        if finding is None or finding.code == "unseen_url" or tool.stays is None:
            return finding
        return None if await tool.stays(arguments) else finding

    async def _why(self, call: ToolCall, tool: Tool) -> tuple[Finding | None, str]:
        """Returns the egress finding and the question for the user, "" if there is none."""
        finding = await self._found(tool, call.arguments)
        if finding and finding.refuse:
            raise ToolError(finding.code, f"{call.name} was not run. {finding.why}")
        file = WorkFile.of(tool, call.arguments, self.live)
        allowed = file is not None and file.is_allowed(self.always())
        action, said = self.policy.decide(tool, call.arguments, allowed)
        if action == "deny":
            raise ToolError("denied_by_rule", f"{call.name} was not run: a rule forbids it.")
        steers = file.why if file and not allowed else ""
        asks = (steers or said) if action == "confirm" else ""
        words = (finding.why if finding else "", asks)
        return finding, " ".join(filter(None, words))

    async def _asked(
        self, call: ToolCall, tool: Tool, emit: Emit, finding: Finding | None, why: str
    ) -> ToolCall:
        file = WorkFile.of(tool, call.arguments, self.live)
        request: Mapping[str, Any] = {
            "call_id": call.id,
            "name": call.name,
            "arguments": dict(call.arguments),
            "effect": tool.spec.effect,
            "server": tool.server,
            "why": named(why),
            "preview": await tool.preview(call.arguments) if tool.preview else None,
            "definition": definition(tool),
            "folder": file.folder if file else "",
        }
        for _ in range(_ROUNDS):
            answer = await self._decision(request, finding, emit)
            if answer.decision == "deny":
                self._denied.add(approval_key(call.name, call.arguments, definition(tool)))
                raise declined(by=answer.by)
            changed = coerced(answer.arguments, tool.spec.parameters)
            wrong = problems_with(changed, tool.spec.parameters)
            wrong = wrong or await self._forbidden(tool, changed)
            if wrong is None:
                return replace(call, arguments=changed)
            request = {**request, "arguments": dict(changed), "why": f"This cannot run: {wrong}"}
        raise declined("The arguments were changed to ones that cannot run.")

    async def _forbidden(self, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        """Returns why this may not run even with the user's consent, or None."""
        finding = await self._found(tool, arguments)
        if finding and finding.refuse:
            return finding.why
        action, said = self.policy.decide(tool, arguments)
        return said if action == "deny" else None

    async def _decision(
        self, request: Mapping[str, Any], finding: Finding | None, emit: Emit
    ) -> ApprovalAnswer:
        """Asks the user, or decides; `auto` approves no call that the egress checks stopped."""
        if self.approve == "ask":
            return await self.ask(request, emit)
        yes = self.approve == "auto" and finding is None
        data = decided(request, "once" if yes else "deny", None, self.approve)
        await emit.event("approval_requested", request)
        await emit.event("approval_decided", data)
        return ApprovalAnswer(data["decision"], data["arguments"], self.approve)


@dataclass(slots=True)
class GuardedProvider:
    """A provider that removes its own search from a request once the switch forbids it."""

    provider: Streams
    guard: Guard
    emit: Emit
    _told: bool = False

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Returns the provider's own stream where nothing is removed: deltas cost no more."""
        guard, why = self.guard, None
        if request.native_search is not None:
            review = guard.policy.review(private=holds_private(guard.messages))
            why = withdrawn(guard.live().search, review)
        return self._without(request, why) if why else self.provider.stream(request)

    async def _without(self, request: Request, why: str) -> AsyncGenerator[StreamEvent, None]:
        if not self._told:
            self._told = True
            await self.emit.event("notice", {"code": "native_search_held_back", "message": why})
        async with aclosing(self.provider.stream(replace(request, native_search=None))) as stream:
            async for event in stream:
                yield event


class GuardFactory:
    """Makes the guards of runs; `approvals` takes the user's answers."""

    def __init__(
        self, settings: Settings, log: EventLog, sources: Iterable[ToolSource] = ()
    ) -> None:
        self._settings = settings
        self._log = log
        self._sources = tuple(sources)
        self.approvals = Approvals(log)

    def use(self, settings: Settings) -> None:
        """Uses these settings for the guards made from now on."""
        self._settings = settings

    def policy(self) -> Policy:
        """Reads the user's rules. Raises ConfigError for a broken file."""
        return load_policy(self._settings.home)

    def guard(
        self,
        session: Session,
        policy: Policy,
        approve: Approve,
        sources: SourceTable,
        messages: Sequence[Message],
        decide: Decide | None = None,
    ) -> Guard:
        """Makes the guard of one run; `messages` may grow with it, `decide` answers for a user."""
        secrets = partial(self._known, session.workspace)
        mixed = policy.private_and_untrusted
        return Guard(
            policy=policy,
            egress=cache(lambda: Egress(secrets, sources, Exposure(messages), mixed)),
            live=partial(self._log.session, session.id),
            ask=partial(self.approvals.ask, session.id, decide),
            always=partial(self.approvals.always, session.id),
            approve=approve,
            messages=messages,
            stays=session.search == "offline",
        )

    def _known(self, workspace: str | None) -> Secrets:
        """Returns every secret of this process and of the servers' configuration."""
        named = secrets_of(self._settings.env)
        for source in self._sources:
            named |= source.secrets(workspace)
        return Secrets(named)

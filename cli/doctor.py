"""Runs `searchloop doctor`, `config` and `plugins`: what is there and missing, and the settings."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import re
import shlex
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import aclosing, closing
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from searchloop.agent import __version__
from searchloop.agent.bare_agent import BareAgent
from searchloop.agent.errors import AgentError, ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.mcp import McpServers
from searchloop.agent.providers import ModelServer, ProviderRegistry, split_model, unset
from searchloop.agent.settings import Environment, Settings, default_home, load_environment
from searchloop.agent.settings.secrets import masked
from searchloop.agent.settings.usual_model import Choice
from searchloop.agent.transport.transport import Transport
from searchloop.agent.transport.trust import certificates, check_proxies
from searchloop.agent.types import ModelInfo
from searchloop.cli import FAILED, OK
from searchloop.cli.arguments import number, one_line, output, tell
from searchloop.cli.search import ask_backend, try_engine
from searchloop.compose import find_plugins, listed_settings, unknown_settings
from searchloop.web.gate.access import KeptToken

_PATIENCE = 15.0  # seconds for all engines
_ROOMY = 16_384  # tokens: below this pages have to be shortened all the time
_MARKS = {"ok": "ok     ", "missing": "MISSING", "hint": "hint   "}
_COMMAND = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `command` can be copied; `missing` stands in the way now."""

    state: Literal["ok", "missing", "hint"]
    what: str
    said: str
    command: str = ""


def _doctor_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_doctor)
    output(parser)


def _config_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_config)
    parser.add_argument("--origin", action="store_true", help="say where each value came from")
    what = "replace the web UI's token: all sign in again"
    parser.add_argument("--new-token", action="store_true", help=what)
    output(parser)


def _doctor(args: argparse.Namespace) -> int:
    """Prints the findings, those that stand in the way with what to do."""
    settings = Settings.load()
    parts = (_machine, _private, _models, _search, _keys, _plugin_findings, mcp_findings)
    findings = [finding for part in parts for finding in part(settings)]
    lines = []
    for finding in findings:
        lines.append(f"{_MARKS[finding.state]}  {finding.what}: {one_line(finding.said, 300)}")
        if finding.command:
            lines.append(f"           {one_line(finding.command, 300)}")
    tell(args, {"findings": [asdict(f) for f in findings]}, *lines)
    return FAILED if any(f.state == "missing" for f in findings) else OK


def _machine(settings: Settings) -> Iterator[Finding]:
    yield Finding("ok", "searchloop", f"{__version__} on {platform.platform()}")
    yield Finding("ok", "Python", platform.python_version())
    yield Finding("ok", "SQLite", sqlite3.sqlite_version)
    yield Finding("ok", "Data", str(settings.home))
    yield _sessions(settings)
    if settings.offline:
        yield Finding("hint", "Network", "SEARCHLOOP_OFFLINE is on: nothing leaves this machine")
    for name in unknown_settings(settings.env):
        yield Finding("hint", name, "no such setting: it has no effect", "searchloop config")
    for what, check in (("Certificates", certificates), ("Proxy", check_proxies)):
        try:
            check()
        except AgentError as error:
            yield Finding("missing", what, str(error))


def _private(settings: Settings) -> Iterator[Finding]:
    """Reports files with keys or chats that other users of this machine can read."""
    home = settings.home
    inside = home.glob("*") if _open_to(0o011, home) else ()
    for path in (*inside, Path.cwd() / ".env"):
        if path.is_file() and _open_to(0o044, path):
            said = f"other users of this machine can read {path}"
            yield Finding("hint", "Privacy", said, f"chmod 600 {shlex.quote(str(path))}")


def _open_to(rights: int, path: Path) -> bool:
    return os.name == "posix" and path.exists() and bool(path.stat().st_mode & rights)


def _sessions(settings: Settings) -> Finding:
    """Says if they can be read and written; `sessions check` finds damage not met yet."""
    try:
        with closing(EventLog(settings.store)) as log:
            log.sessions(limit=1)
            if log.trouble:
                raise log.trouble
    except AgentError as error:
        return Finding("missing", "Sessions", str(error), _command(error.remedy))
    return Finding("ok", "Sessions", "can be read and written")


def _command(remedy: str | None) -> str:
    """Returns the command that a remedy names in backticks."""
    found = _COMMAND.search(remedy or "")
    return found[1] if found else ""


def _models(settings: Settings) -> Iterator[Finding]:
    with BareAgent(settings, search_backend=None) as agent:
        models, usual = agent.models(), agent.usual_model()
    chosen = usual.model.partition(":")[0]
    # A key that was refused makes models unavailable too; what is merely not set is told below.
    remote = {m.id.partition(":")[0] for m in models if not (m.local or unset(m))}
    servers, faults = asyncio.run(_asked(settings, sorted(remote)))
    cloud = {True: ", may use its cloud", False: ", without its cloud", None: ""}
    for server in filter(lambda each: each.version, servers):
        said = f"{server.version} at {server.address}{cloud[server.cloud]}"
        yield Finding("ok", server.name, said)
    yield _chosen(usual, models)
    for name, error in faults.items():
        command = _command(error.remedy)
        if error.code in ("unauthorized", "forbidden", "missing_key"):
            command = f"searchloop setup --provider {name} --key-stdin"
        said = f"{error.message} {'' if command else error.remedy}".strip()
        yield Finding("missing" if name == chosen else "hint", f"Provider {name}", said, command)
    for provider in dict.fromkeys(model.id.partition(":")[0] for model in models):
        own = [m for m in models if m.id.partition(":")[0] == provider]
        ready = [m for m in own if m.available]
        if ready and provider not in faults:
            names = ", ".join(m.id.partition(":")[2] for m in ready[:6])
            more = f" and {len(ready) - 6} more" if len(ready) > 6 else ""
            yield Finding("ok", f"Models of {provider}", f"{names}{more}")
            if ready[0].remedy:
                yield Finding("hint", f"Models of {provider}", ready[0].remedy)
            yield from _small(ready)
        elif provider not in (chosen, *faults):
            yield _lacking("hint", f"Models of {provider}", own[0])


async def _asked(
    settings: Settings, names: list[str]
) -> tuple[list[ModelServer], dict[str, AgentError]]:
    """Returns the user's own servers, and the faults of these providers when asked for models."""
    async with aclosing(Transport(offline=settings.offline)) as transport:
        registry = ProviderRegistry(settings.env, transport)
        asked = (registry.trial(name, {}) for name in names)
        said = await asyncio.gather(*asked, return_exceptions=True)
        servers = [await host.server() for host in registry.hosts()]
    both = zip(names, said, strict=True)
    return servers, {name: each for name, each in both if isinstance(each, AgentError)}


def _chosen(usual: Choice, models: Iterable[ModelInfo]) -> Finding:
    """Reports the model that is used when none is named."""
    what, name = "Default model", usual.model
    try:
        provider, _ = split_model(name)
    except AgentError as error:
        return Finding("missing", what, str(error))
    own = [m for m in models if m.id.partition(":")[0] == provider]
    found = next((m for m in own if m.id in (name, f"{name}:latest")), None)
    if found and found.available:
        return Finding("ok", what, f"{name}, {usual.why}")
    if found or (own and not any(m.available for m in own)):
        return _lacking("missing", what, found or own[0])
    if any(m.local for m in own):
        said = f"{name} is not installed"
        return Finding("missing", what, said, f"searchloop models pull {name.partition(':')[2]}")
    return Finding("hint", what, f"{name} is not among the models that {provider or name} lists")


def _lacking(state: Literal["missing", "hint"], what: str, model: ModelInfo) -> Finding:
    name = unset(model)
    said = f"{name} is not set" if name else (model.missing or "not available").rstrip(".")
    if "ollama serve" in (model.remedy or "") and not shutil.which("ollama"):
        said += ", and it is not installed here; see https://ollama.com/download"
    command = _command(model.remedy) or (f"export {name}=..." if name else "")
    if not command:
        said = f"{said}. {model.remedy or ''}".strip()
    return Finding(state, what, said, command)


def _small(models: Iterable[ModelInfo]) -> Iterator[Finding]:
    """Reports windows in which pages hardly fit, and models without tool calls of their own."""
    for model in models:
        window = model.capabilities.context
        if model.local and window and window < _ROOMY:
            said = f"its window is {window:,} tokens; pages are shortened to fit"
            command = f"export OLLAMA_CONTEXT_LENGTH={_ROOMY}"
            if not model.id.startswith("ollama:"):
                said += f"; start its server with more (llama-server: -c {_ROOMY})"
                command = ""
            yield Finding("hint", model.id, said, command)
        if model.calls == "envelope":
            yield Finding("hint", model.id, f"has no tool calls; it searches by {model.calls}")


def _search(settings: Settings) -> Iterator[Finding]:
    try:
        engines = ask_backend("/api/engines")["engines"]
    except AgentError as error:
        yield Finding("missing", "Search", str(error))
        return
    usable = [e for e in engines if e["available"] and e["position"]]
    usable.sort(key=itemgetter("position"))
    faults = _faults([e["name"] for e in usable])
    works = [e["name"] for e in usable if e["name"] not in faults]
    if works:
        yield Finding("ok", "Search", ", then ".join(works))
    else:
        said = "no engine answers" if usable else "no engine can be used"
        yield Finding("missing", "Search", said, "export SEARCH_ENGINES=ddg,library")
    keyed = {e["name"] for e in engines if any("KEY" in need for need in e["needs"])}
    for name, said in faults.items():
        again = f"searchloop search --engine {name} test"
        command = f"searchloop setup --engine {name}" if name in keyed else again
        yield Finding("hint", f"Search engine {name}", said, command)
    more = [e for e in engines if e["missing"]]
    if more:
        said = ", ".join(f"{e['name']} ({' '.join(e['missing'])})" for e in more)
        yield Finding("hint", "More engines", said, f"searchloop setup --engine {more[0]['name']}")


def _faults(names: list[str]) -> dict[str, str]:
    """Asks each engine once, all at the same time; returns the faults of those that have one."""

    def ask(name: str) -> str:
        try:
            return try_engine(name)[0]
        except AgentError as error:
            return str(error)

    pool = ThreadPoolExecutor(max_workers=len(names) or 1)
    asked = {name: pool.submit(ask, name) for name in names}
    wait(asked.values(), _PATIENCE)
    pool.shutdown(wait=False, cancel_futures=True)
    late = f"it gave no answer within {_PATIENCE:g} seconds"
    told = {name: each.result() if each.done() else late for name, each in asked.items()}
    return {name: fault for name, fault in told.items() if fault}


def _keys(settings: Settings) -> Iterator[Finding]:
    """Reports saved keys that are not used, as their address leads to another server now."""
    store = settings.env.key_store
    for name in store.names() if store else ():
        if store and (moved := store.strayed(name, settings.env)):
            said = f"not used: {moved} leads elsewhere than when it was saved"
            yield Finding("hint", name, said, f"searchloop setup --forget {name}")


def mcp_findings(settings: Settings) -> Iterator[Finding]:
    """Starts each MCP server that is switched on once; leaves those of a project alone."""
    found = McpServers(settings).catalogue.find(None)
    for problem in found.problems:
        what = f"MCP server {problem.server}" if problem.server else "MCP servers"
        yield Finding("hint", what, f"{problem.file}: {problem.error}")
    names = [server.name for server in found.servers if not server.disabled]
    for told in asyncio.run(_tried(settings, names)):
        what, error = f"MCP server {told['name']}", told["error"]
        if error:
            said = f"{error['message']} {error['remedy']}"
            again = shlex.join(["searchloop", "mcp", "test", told["name"]])
            mends = _command(error["remedy"]) or again
            yield Finding("hint", what, said, mends)
        else:
            suspended = [tool["name"] for tool in told["tools"] if tool["suspended"]]
            said = number(sum(tool["enabled"] for tool in told["tools"]), "tool")
            command = shlex.join(["searchloop", "mcp", "approve", told["name"], *suspended[:1]])
            said += f", {len(suspended)} suspended because changed" if suspended else ""
            yield Finding("hint" if suspended else "ok", what, said, command if suspended else "")


async def _tried(settings: Settings, names: list[str]) -> list[dict[str, Any]]:
    async with aclosing(McpServers(settings)) as source:
        return list(await asyncio.gather(*(source.test(name) for name in names)))


def _config(args: argparse.Namespace) -> int:
    """Prints each setting on a line: NAME = value, and with --origin where it was set."""
    env = load_environment()
    if args.new_token:
        return _renew_token(env, args)
    found = list(_shown(env, origin=args.origin))
    return tell(args, {"settings": [row for row, _ in found]}, *(line for _, line in found))


def _shown(env: Environment, *, origin: bool) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields each setting as JSON and as a line, without the value of a secret."""
    for setting in listed_settings(env):
        known = (setting.name, *setting.aliases)
        name = next((n for n in known if env.get(n)), setting.name)
        home = str(default_home(env)) if name == "SEARCHLOOP_HOME" else ""
        value: str | None = masked(env.get(name) or setting.default or home) or None
        if setting.secret and env.get(name):
            value = "(set, not shown)"
        place = f"  # {env.origin(name)}" if origin else ""
        line = f"{name} = {one_line(value or '(not set)', 200)}{place}"
        yield {"name": name, "value": value, "origin": env.origin(name)}, line


def _renew_token(env: Environment, args: argparse.Namespace) -> int:
    if env.get("SEARCHLOOP_TOKEN"):
        what = f"SEARCHLOOP_TOKEN is set by {env.origin('SEARCHLOOP_TOKEN')}, so it is the token."
        remedy = "Change it there, then start searchloop again."
        raise ConfigError("fixed_token", what, remedy)
    kept = KeptToken(default_home(env))
    kept.renew()
    said = f"The token in {kept.path} is new. Browsers sign in again; scripts need the new one."
    return tell(args, {"token_file": str(kept.path)}, said)


def _plugins_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_plugins)
    output(parser)


def _plugins(args: argparse.Namespace) -> int:
    """Prints what other packages bring, and from which; a broken plugin is no failure of ours."""
    found = find_plugins()
    rows = [{"kind": kind, **row} for kind, parts in found.items() for row in parts]
    lines = [
        f"{row['kind']:<10} {one_line(row['name'], 40):<16} {one_line(row['package'], 60):<24} "
        f"{one_line(row['problem'], 240) or 'loaded'}"
        for row in rows
    ]
    none = "No plugins: no installed package brings engines, readers, providers or tools."
    return tell(args, {"plugins": rows}, *(lines or [none]))


def _plugin_findings(settings: Settings) -> Iterator[Finding]:
    for parts in find_plugins().values():
        for part in parts:
            if part["problem"]:
                yield Finding("hint", f"Plugin {part['name']}", part["problem"])


ARGUMENTS = {
    "doctor": _doctor_arguments,
    "config": _config_arguments,
    "plugins": _plugins_arguments,
}

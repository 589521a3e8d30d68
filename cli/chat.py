"""Runs `searchloop chat`: questions and answers at the terminal, in one session.

A line that begins with `/` is a command; `//` begins a question with a slash. A line that ends with
a backslash goes on in the next one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Unpack

from searchloop.agent.bare_agent import BareAgent, Turn
from searchloop.agent.errors import AgentError, ConfigError
from searchloop.agent.log.events import Event
from searchloop.agent.mcp import McpServers
from searchloop.agent.run.prompts import NamedAgents
from searchloop.agent.run.question import change_session, open_session
from searchloop.agent.run.question.files import NewFile
from searchloop.agent.run.undo import undo_files
from searchloop.agent.settings import Settings
from searchloop.agent.tools.present_plan import find_plan, run_text
from searchloop.agent.types.attachments import size_words
from searchloop.analysis.told import did_you_mean, one_of
from searchloop.cli import OK
from searchloop.cli.agents import agent_line
from searchloop.cli.arguments import MODES, SEARCHES, one_line, safe, undone, warn
from searchloop.cli.ask import (
    agent_with_tools,
    asking,
    instructions,
    session_arguments,
    session_for,
    session_named,
    settled,
)
from searchloop.cli.models import whole_name
from searchloop.cli.sessions import export_text, write_export
from searchloop.cli.show import as_text, code_of, print_sources, spoken_here
from searchloop.cli.terminal.line_editor import PATHS, LineEditor

_KNOWN = {"mode": MODES, "search": ("on", *SEARCHES)}
# Words that people bring from other programs; the first three count without a slash, too.
_ALSO = {"exit": "quit", "quit": "quit", ":q": "quit", "q": "quit", "clear": "new", "reset": "new"}
_ALSO |= {"?": "help", "h": "help", "regenerate": "retry"}
_BARE = ("exit", "quit", ":q")
_CHOICES = ("model", "mode", "search", "workspace", "agent")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=run)
    session_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Talks until the input ends. A session in which nothing was asked is not kept."""
    settings = Settings.load()
    with agent_with_tools(settings) as (agent, mcp):
        wanted = {name: getattr(args, name) for name in _CHOICES}
        wanted["project"] = args.project and agent.log.projects.named(args.project).id
        wanted["model"] = args.model and whole_name(agent, args.model)
        session = session_for(agent, session_named(agent, args), wanted)
        turn: Turn = {"approve": settled(args.approve, "text"), **instructions(args)}
        chat = TerminalChat(agent, session, turn, mcp)
        try:
            chat.talk(sys.stdin.isatty())
        finally:
            chat.leave()
    return OK


class TerminalChat:
    """One session at the terminal."""

    def __init__(
        self, agent: BareAgent, session: str, turn: Turn, servers: McpServers | None = None
    ) -> None:
        self._agent, self._servers = agent, servers
        self._typed: Callable[[str], str] = input
        self._session = session
        self._turn = turn  # options of each question
        self._over = False
        self._files: list[NewFile] = []  # to be sent with the next question
        named = (
            *(self._agents, self._file, self._retry, self._export, self._sources),
            *(self._run, self._undo, self._compact, self._new, self._help, self._quit),
        )
        self._commands = {name: self._choose(name) for name in _CHOICES}
        self._commands |= {each.__name__.removeprefix("_"): each for each in named}

    def talk(self, person: bool, typed: Callable[[str], str] = input) -> None:
        """Reads lines until there are no more; shows a prompt if a `person` is there."""
        editor = LineEditor(None if self._passing() else self._agent.settings.home, self._choices())
        self._typed = typed
        if person:
            editor.open()
            self._status()
        while not self._over:
            try:
                line = typed("\n> " if person else "")
                while line.endswith("\\") and not line.startswith("/"):
                    line = f"{line[:-1]}\n{typed('  ' if person else '')}"
            except EOFError:
                return
            except UnicodeDecodeError as error:
                what = "Standard input is not UTF-8 text."
                raise ConfigError("bad_stdin", what, "Convert it to UTF-8 first.") from error
            except KeyboardInterrupt:
                warn("\nCtrl-D or /quit ends the chat.")
                continue
            try:
                if person:
                    editor.add(line)
                self.take(line)
            except AgentError as error:
                warn(f"searchloop: {error}")

    def take(self, line: str) -> None:
        """Carries out one line that was typed. Raises AgentError for what cannot be done."""
        line = line.strip()
        if not line:
            return
        line = f"/{line}" if line in _BARE else line
        if not line.startswith("/") or line.startswith("//"):
            self._ask(line.removeprefix("/") if line.startswith("//") else line)
            return
        name, _, rest = line[1:].partition(" ")
        name = _ALSO.get(name, name)
        if self._servers and ":" in name:
            self._prompt(self._servers, name, rest)
            return
        if name not in self._commands:
            what = f"There is no command /{one_line(name, 40)}."
            near = did_you_mean(f"/{name}", (f"/{each}" for each in self._commands))
            raise ConfigError("unknown_command", what, f"{near}/help lists those there are.")
        self._commands[name](rest.strip())

    def _prompt(self, servers: McpServers, name: str, words: str) -> None:
        """Asks what a prompt of an MCP server says, once the user has seen it and agrees."""
        folder = self._agent.log.session(self._session).workspace
        text = self._agent.wait(servers.prompt(name, words, folder))
        print(safe(text))
        if self._typed("Ask this? [y/N] ").strip().lower() in ("y", "yes"):
            self._ask(text)

    def _passing(self) -> bool:
        return bool(self._agent.log.session(self._session).settings.get("temporary"))

    def _choices(self) -> dict[str, Callable[[], Iterable[str]]]:
        """Returns, for each command, what may follow it."""

        def models() -> list[str]:
            return [model.id for model in self._agent.models() if model.available]

        def agents() -> list[str]:
            return ["none", *(agent.name for agent in NamedAgents(self._agent.settings.home).all())]

        known: dict[str, Callable[[], Iterable[str]]] = dict.fromkeys(self._commands, tuple)
        known |= {name: partial(tuple, words) for name, words in _KNOWN.items()}
        known |= dict.fromkeys(("file", "workspace", "export"), lambda: [PATHS])
        return {**known, "model": models, "agent": agents}

    def leave(self) -> None:
        """Deletes the session if nothing was asked in it."""
        with suppress(AgentError):
            if not self._agent.log.session(self._session).messages:
                self._agent.log.delete_session(self._session)

    def _ask(self, text: str, **more: Unpack[Turn]) -> None:
        events: Iterator[Event] = iter(())
        try:
            turn: Turn = {**self._turn, "files": self._files, **more}
            events = self._agent.stream(text, session=self._session, **turn)
            self._files = []
            shown = asking(self._agent, events) if turn["approve"] == "ask" else events
            before = self._agent.log.read(self._session) if sys.stdout.isatty() else ()
            as_text(shown, before=before)
        except KeyboardInterrupt:
            self._stop(events)

    def _stop(self, events: Any) -> None:
        """Ends the answer and keeps what was said."""
        with suppress(KeyboardInterrupt, AttributeError):  # no answer may have begun yet
            events.close()
        ended = self._agent.log.last_event(self._session)
        done = ended.type == "run_finished" and code_of(ended) == OK
        warn("" if done else f"\n  {spoken_here()['end.cancelled']}")

    def _status(self) -> None:
        session = self._agent.log.session(self._session)
        parts = [session.model, f"mode {session.mode}", f"search {session.search}"]
        parts += [f"agent {session.settings['agent']}"] if session.settings.get("agent") else []
        parts += [f"workspace {session.workspace}"] if session.workspace else []
        print(one_line(", ".join(parts), 300), file=sys.stderr)

    def _choose(self, name: str) -> Callable[[str], None]:
        def command(value: str) -> None:
            if value:
                change = {name: self._read(name, value)}
                change_session(self._agent.log, self._agent.settings, self._session, change)
            self._status()

        return command

    def _read(self, name: str, value: str) -> str | None:
        """Returns a choice as the session stores it. Raises ConfigError for a wrong one."""
        if name in _KNOWN:
            value = "auto" if (name, value) == ("search", "on") else value
            if value not in _KNOWN[name]:
                what = f"There is no {name} {one_line(value, 40)}."
                raise ConfigError(f"bad_{name}", what, one_of(value, _KNOWN[name]))
        elif name == "model":
            return whole_name(self._agent, value)
        elif value == "none":
            return None
        return os.path.abspath(os.path.expanduser(value)) if name == "workspace" else value

    def _file(self, path: str) -> None:
        if path == "none":
            self._files = []
        elif path:
            self._files.append(NewFile.of(path.strip("'\"")))
        names = ", ".join(f"{file.name} ({size_words(len(file.data))})" for file in self._files)
        warn(f"With the next question: {names or 'no file'}.")

    def _retry(self, _: str) -> None:
        events = self._agent.log.read(self._session)
        question = next((e for e in reversed(events) if e.type == "user_message"), None)
        if question is None:
            raise ConfigError("no_question", "Nothing was asked yet.", "Ask something first.")
        self._ask(question.data["text"], replaces=question.seq)

    def _export(self, name: str) -> None:
        if not name:
            raise ConfigError("no_file", "Which file?", "Write /export chat.md, .html or .json.")
        form = os.path.splitext(name)[1].lstrip(".").lower()
        form = form if form in ("html", "json") else "md"
        log = self._agent.log
        text = export_text(log, log.session(self._session), form)
        write_export(name.strip("'\""), text, force=False)

    def _agents(self, _: str) -> None:
        for preset in NamedAgents(self._agent.settings.home).all():
            print(agent_line(preset))

    def _sources(self, _: str) -> None:
        events, words = self._agent.log.read(self._session), spoken_here()
        ended = [event.data for event in events if event.type == "run_finished"]
        print_sources(ended, words)
        if not any(data["sources"] for data in ended):
            print(words["sources.none"])

    def _run(self, _: str) -> None:
        plan = find_plan(self._agent.log.read(self._session))
        self._ask(run_text(plan), mode="agent", plan=plan)

    def _undo(self, _: str) -> None:
        print(undone(undo_files(self._agent.log, self._agent.settings, self._session)))

    def _compact(self, _: str) -> None:
        before = self._agent.log.last_seq(self._session) or 0
        self._agent.compact(self._session)
        made = self._agent.log.read(self._session, before)
        summaries = [event for event in made if event.type == "summary"]
        for event in summaries:
            print(f"A summary of {len(event.data['turns'])} turns now goes to the model.")
        if not summaries:
            print("There is nothing to summarise: the last two turns stay whole.")

    def _new(self, _: str) -> None:
        session = self._agent.log.session(self._session)
        wanted = {name: getattr(session, name) for name in _CHOICES[:-1]}
        wanted |= {name: session.settings.get(name) for name in ("agent", "project")}
        fresh = open_session(self._agent.log, self._agent.settings, wanted).id
        self.leave()
        self._session = fresh
        self._status()

    def _help(self, _: str) -> None:
        for name in self._commands:
            print(f"/{name:<10} {spoken_here()[f'command.{name}']}")

    def _quit(self, _: str) -> None:
        self._over = True


ARGUMENTS = {"chat": _arguments}

"""What a person tells every chat, or those of a project: instructions, files and defaults.

SEARCHLOOP_HOME/instructions.json has the words for every chat. They are the user's own, so they
stand in the system text; the files of a project are attached to the questions of its chats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from searchloop.agent.calls.instructions import Instructions
from searchloop.agent.errors import ConfigError, StoreError
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import AttachedFile
from searchloop.agent.log.projects import Project
from searchloop.agent.log.session import Session
from searchloop.agent.providers import Provider, split_model
from searchloop.agent.run.prompts import NamedAgents
from searchloop.agent.run.question.files import MOST_FILES, MOST_TOGETHER
from searchloop.agent.run.question.title import one_line
from searchloop.agent.settings import Settings
from searchloop.agent.settings.keys import replace_private
from searchloop.agent.text import well_formed
from searchloop.agent.types import SEARCHES, NativeSearch
from searchloop.agent.types.attachments import Attachment, size_words

LONGEST = 20_000  # characters of instructions
_NAME = 100  # characters
MOST_FOLDERS, LONGEST_FOLDER = 20, 4_096
_FILE = "instructions.json"


@dataclass(frozen=True, slots=True)
class OwnWords:
    """What a person tells every chat: who they are, and how they want to be answered."""

    about: str = ""
    answer: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Returns them as JSON."""
        return asdict(self)


def own_words(home: Path) -> OwnWords:
    """Reads a person's words. Raises ConfigError for a file that cannot be read."""
    path = home / _FILE
    try:
        data = json.loads(path.read_text("utf-8"))
        return OwnWords(*(_text(name, data.get(name) or "") for name in ("about", "answer")))
    except (FileNotFoundError, NotADirectoryError):
        return OwnWords()
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        what = f"Your instructions cannot be read: {error}."
        raise ConfigError("bad_instructions", what, f"Correct {path}, or remove it.") from error


def save_words(home: Path, data: Mapping[str, Any]) -> OwnWords:
    """Stores a person's words. Raises ConfigError for too many, StoreError."""
    given = {**own_words(home).as_dict(), **data}
    words = OwnWords(**{name: _text(name, text) for name, text in given.items()})
    try:
        replace_private(home / _FILE, json.dumps(words.as_dict(), indent=1, ensure_ascii=False))
    except OSError as error:
        what = f"Your instructions could not be saved: {error}."
        raise StoreError("not_saved", what, "Check the data folder and its disk.") from error
    return words


def standing_text(words: OwnWords, project: Project | None) -> str:
    """Returns the part of the system text that the user wrote; empty if there is none."""
    parts = [
        ("About the user, in their own words:", words.about),
        ("How the user wants to be answered, in their own words:", words.answer),
        (
            "What the user says of the project that this chat is in:",
            project and project.instructions,
        ),
    ]
    return "\n\n".join(f"{head}\n{text.strip()}" for head, text in parts if text and text.strip())


def project_of(log: EventLog, settings: Mapping[str, Any]) -> Project | None:
    """Returns the project that a session's settings name; None also for one that is gone."""
    try:
        return log.projects.get(settings["project"]) if settings.get("project") else None
    except ConfigError:
        return None


def lent_files(log: EventLog, session: Session) -> list[Attachment]:
    """Returns the files of a session's project, which the session then holds too."""
    project = project_of(log, session.settings)
    return log.projects.lend(project, session.id) if project and project.files else []


def with_folders(log: EventLog, session: Session, options: NativeSearch) -> NativeSearch:
    """Returns search options that keep to the library folders of a session's project."""
    project = project_of(log, session.settings)
    return replace(options, folders=project.folders) if project else options


def with_standing(
    own: Instructions, provider: Provider, chat: Mapping[str, Any], log: EventLog, home: Path
) -> Instructions:
    """Adds what the person and the project of a chat tell it, and the options set for the chat.

    What a question brings itself comes last and wins. An option that was set for another model and
    that this one does not take is left out.
    """
    said = standing_text(own_words(home), project_of(log, chat))
    taken = {*(getattr(provider, "options", None) or ()), "max_tokens"}
    kept = {name: value for name, value in (chat.get("options") or {}).items() if name in taken}
    if getattr(provider, "options", None) is None:
        kept = {}
    system = "\n\n".join(filter(None, (said, own.system)))
    return replace(own, system=system or None, options={**kept, **own.options})


def make_project(log: EventLog, settings: Settings, data: Mapping[str, Any]) -> Project:
    """Makes a project. Raises ConfigError that names the mistake."""
    fields = _checked(settings, data)
    return log.projects.create(fields.pop("name", "") or _named(""), fields)


def change_project(
    log: EventLog, settings: Settings, project: str, data: Mapping[str, Any]
) -> Project:
    """Changes a project; None removes a default. Raises ConfigError."""
    fields = _checked(settings, data)
    return log.projects.change(project, lambda now: replace(now, **fields))


def add_files(log: EventLog, project: str, files: list[AttachedFile]) -> Project:
    """Adds checked files to a project. Raises ConfigError for too many."""
    fresh = {file.attachment.digest: file.attachment for file in files}
    every = {**{f.digest: f for f in log.projects.get(project).files}, **fresh}
    if len(every) > MOST_FILES or sum(file.size for file in every.values()) > MOST_TOGETHER:
        what = f"A project holds at most {MOST_FILES} files, {size_words(MOST_TOGETHER)} together."
        remedy = "Remove one first, or put large ones into the library."
        raise ConfigError("attachment_too_large", what, remedy)
    return log.projects.add_files(project, files)


def _checked(settings: Settings, data: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(data)
    if "name" in given:
        given["name"] = _named(given["name"])
    if "instructions" in given:
        given["instructions"] = _text("instructions", given["instructions"] or "")
    if given.get("model"):
        split_model(given["model"])
    if given.get("agent"):
        NamedAgents(settings.home).get(given["agent"])
    if given.get("search") not in (None, *SEARCHES):
        what = f"There is no search {given['search']!r}."
        raise ConfigError("bad_search", what, f"Choose one of {', '.join(SEARCHES)}.")
    if "folders" in given:
        named = dict.fromkeys(well_formed(each).strip() for each in given["folders"] or ())
        given["folders"] = tuple(filter(None, named))
        if len(named) > MOST_FOLDERS or max(map(len, named), default=0) > LONGEST_FOLDER:
            what = f"These are not at most {MOST_FOLDERS} folders of the library."
            raise ConfigError("bad_folders", what, "Name some that `searchloop library` lists.")
    return given


def _named(name: str) -> str:
    line = one_line(name, _NAME)
    if not line:
        raise ConfigError("empty_title", "The project has no name.", "Write a few words.")
    return line


def _text(name: str, text: Any) -> str:
    if not isinstance(text, str) or len(text) > LONGEST:
        what = f"{name} is not a text of at most {LONGEST:,} characters."
        raise ConfigError("bad_instructions", what, "Shorten it.")
    return well_formed(text)

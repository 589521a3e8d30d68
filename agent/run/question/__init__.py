"""Checks questions and sessions, as users make them, before anything is stored.

Others may import: afterwards, attached, files, standing, structured, title.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from searchloop.agent.calls.instructions import Instructions
from searchloop.agent.errors import ConfigError
from searchloop.agent.guard.approvals import Approve
from searchloop.agent.log import EventLog
from searchloop.agent.log.projects import Project
from searchloop.agent.log.session import PROVISIONAL, Session
from searchloop.agent.run.prompts import NamedAgent, NamedAgents, settings_of
from searchloop.agent.search.switch import SearchPath
from searchloop.agent.settings import Settings
from searchloop.agent.text import well_formed
from searchloop.agent.tools import ALLOWED
from searchloop.agent.tools.workspace import checked_folder
from searchloop.agent.types import SEARCHES, Limits, NativeSearch
from searchloop.agent.types.attachments import Attachment

MAX_QUESTION = 1_000_000  # characters
UNDONE = "undone"  # in a session's settings: files whose changes the user has taken back
_TAKEN_BACK = "The user has undone your changes to these files; they are as they were before:"


def run_started(run_id: str, session: Session, path: SearchPath) -> dict[str, str]:
    """Returns the data of `run_started`."""
    return {
        "run_id": run_id,
        "session_id": session.id,
        "model": session.model,
        "mode": session.mode,
        "search": session.search,
        "search_path": path.name,
    }


def asked_data(
    text: str,
    session: Session,
    replaces: int | None,
    plan: Mapping[str, Any] | None,
    files: Sequence[Attachment] = (),
) -> dict[str, Any]:
    """Returns the data of `user_message`, with a note for the model on files that were undone."""
    data: dict[str, Any] = {"text": text}
    undone = session.settings.get(UNDONE)
    if replaces:
        data["replaces"] = replaces
    if plan:
        data["plan"] = plan["plan_id"]
    if files:
        data["attachments"] = [file.as_dict() for file in files]
    if undone:
        data["note"] = f"[{_TAKEN_BACK} {', '.join(undone)}]"
    return data


def changed(session: Session, changes: dict[str, str]) -> Session:
    """Returns the session with these settings. Raises ConfigError that names the choices."""
    session = replace(session, **changes)  # type: ignore[arg-type]
    choices: tuple[tuple[str, str, Iterable[str]], ...] = (
        ("mode", session.mode, ALLOWED),
        ("search", session.search, SEARCHES),
    )
    for name, value, known in choices:
        if value not in known:
            what = f"There is no {name} {value!r}."
            raise ConfigError(f"bad_{name}", what, f"Choose one of {', '.join(known)}.")
    return session


def checked(text: str) -> str:
    """Returns the text of a question. Raises ConfigError if it is empty or too long."""
    if not text.strip():
        raise ConfigError("empty_question", "The question is empty.", "Write something to ask.")
    if len(text) > MAX_QUESTION:
        what = f"The question has {len(text):,} characters; {MAX_QUESTION:,} is the most."
        remedy = "Shorten it, or put the text in a file and add that with `searchloop library add`."
        raise ConfigError("question_too_long", what, remedy)
    return well_formed(text)


TurnOptions = tuple[Limits, NativeSearch, Approve, Instructions]


def turn_data(
    limits: Limits, search: NativeSearch, approve: Approve, own: Instructions
) -> dict[str, Any]:
    """Returns the options of a turn as JSON; its lease stores them for a takeover."""
    data = {"limits": asdict(limits), "options": asdict(search), "approve": approve}
    return data | {"instructions": own.as_dict()}


def turn_from(data: Mapping[str, Any]) -> TurnOptions:
    """Reads `turn_data` back; missing values get their defaults."""
    options: Mapping[str, Any] = data.get("options", {})
    held: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    approve: Approve = data.get("approve", "ask")
    own = Instructions(**data.get("instructions", {}))
    return Limits(**data.get("limits", {})), NativeSearch(**held), approve, own


def gave_up(takeovers: int) -> ConfigError:
    """Returns the error of a run that is not resumed."""
    times = f", {takeovers} times." if takeovers > 1 else "."
    what = f"searchloop stopped before the answer was finished{times}"
    return ConfigError("interrupted", what, "What came is kept. Send the question again.")


def open_session(log: EventLog, settings: Settings, wanted: Mapping[str, Any]) -> Session:
    """Makes a session; a `temporary` one is in no list. Raises ConfigError for a wrong choice.

    `wanted` has model, mode, search, workspace, agent and temporary; `log` keeps it.

        open_session(agent.log, agent.settings, {"model": "ollama:qwen3:8b"}).id
    """
    chosen = {name: value for name, value in wanted.items() if value is not None}
    kept = {"project": chosen.pop("project", None)}
    usual = {"model": settings.model, "search": settings.search}
    folder = log.projects.get(kept["project"]) if kept["project"] else None
    preset = _preset(settings.home, chosen.pop("agent", None) or _agent_of(folder, settings.home))
    if "workspace" in chosen:
        chosen["workspace"] = checked_folder(chosen["workspace"], settings.home, settings.files)
    if chosen.pop("temporary", False):
        kept["temporary"] = True
    return log.create_session(
        **{**usual, **_said(preset), **_said(folder), **chosen},
        settings={**(settings_of(preset) if preset else {}), **kept},
    )


def _agent_of(folder: Project | None, home: Path) -> str | None:
    """Returns the agent that a project begins with, if that is still there."""
    if folder and folder.agent:
        with suppress(ConfigError):
            return NamedAgents(home).get(folder.agent).name
    return None


def change_session(
    log: EventLog, settings: Settings, session_id: str, wanted: Mapping[str, Any]
) -> Session:
    """Changes a session; None removes its agent or workspace. Raises ConfigError, Conflict."""
    log.session(session_id)
    chosen = dict(wanted)
    kept: dict[str, Any] = {}
    if "agent" in chosen:
        preset = _preset(settings.home, chosen.pop("agent"))
        kept = settings_of(preset)
        chosen = {**_said(preset), **chosen}
    if "title" in chosen:
        kept[PROVISIONAL] = None
    for name in ("pinned", "archived"):
        if name in chosen:
            kept[name] = chosen.pop(name) or None
    if "project" in chosen:
        project = chosen.pop("project")
        kept["project"] = log.projects.get(project).id if project else None
    if "options" in chosen:
        kept["options"] = Instructions.of(options=chosen.pop("options")).options or None
    if chosen.get("workspace") is not None:
        chosen["workspace"] = checked_folder(chosen["workspace"], settings.home, settings.files)
    return log.update_session(session_id, kept, **chosen)


def _preset(home: Path, name: str | None) -> NamedAgent | None:
    return NamedAgents(home).get(name) if name else None


def _said(preset: NamedAgent | Project | None) -> dict[str, str]:
    """Returns model, mode and search as an agent or a project sets them."""
    chosen = {name: getattr(preset, name, None) for name in ("model", "mode", "search")}
    return {name: value for name, value in chosen.items() if value is not None}

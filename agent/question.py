"""What is asked of a session, checked before anything is stored or sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from agent.approvals import Approve
from agent.errors import ConfigError
from agent.limits import Limits
from agent.search_path import SEARCHES, SearchPath
from agent.session import Session
from agent.text import well_formed
from agent.tools import ALLOWED
from agent.types import NativeSearch

MAX_QUESTION = 1_000_000  # characters
UNDONE = "undone"  # in a session's settings: files whose changes the user has taken back
_TAKEN_BACK = "The user has undone your changes to these files; they are as they were before:"


def run_started(run_id: str, session: Session, path: SearchPath) -> dict[str, str]:
    """The data of `run_started`."""
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
    replaces: int | None = None,
    plan: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The data of `user_message`, with a note for the model on what the user did meanwhile."""
    data: dict[str, Any] = {"text": text}
    undone = session.settings.get(UNDONE)
    if replaces:
        data["replaces"] = replaces
    if plan:
        data["plan"] = plan["plan_id"]
    if undone:
        data["note"] = f"[{_TAKEN_BACK} {', '.join(undone)}]"
    return data


def changed(session: Session, changes: dict[str, str]) -> Session:
    """The session with these settings. Raises ConfigError naming the choices there are."""
    session = replace(session, **changes)  # type: ignore[arg-type]
    if session.mode not in ALLOWED:
        raise _bad_choice("mode", session.mode, ALLOWED)
    if session.search not in SEARCHES:
        raise _bad_choice("search", session.search, SEARCHES)
    return session


def _bad_choice(what: str, value: str, choices: Iterable[str]) -> ConfigError:
    return ConfigError(
        f"bad_{what}", f"There is no {what} {value!r}.", f"Choose one of {', '.join(choices)}."
    )


def checked(text: str) -> str:
    """The text of a question that can be sent; ConfigError for an empty or endless one."""
    if not text.strip():
        raise ConfigError("empty_question", "The question is empty.", "Write something to ask.")
    if len(text) > MAX_QUESTION:
        raise ConfigError(
            "question_too_long",
            f"The question has {len(text):,} characters; {MAX_QUESTION:,} is the most.",
            "Shorten it, or put the text in a file and add that with `searchloop library add`.",
        )
    return well_formed(text)


def title_of(text: str) -> str:
    """What a session is called after its first question."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59].rsplit(" ", 1)[0] + "…"


def turn_data(limits: Limits, options: NativeSearch, approve: Approve) -> dict[str, Any]:
    """What a turn is held to, as it is kept for whoever goes on with it."""
    return {"limits": asdict(limits), "options": asdict(options), "approve": approve}


def turn_from(data: Mapping[str, Any]) -> tuple[Limits, NativeSearch, Approve]:
    """The same, read back; what an older version did not keep is as by default."""
    options: Mapping[str, Any] = data.get("options", {})
    held: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    approve: Approve = data.get("approve", "ask")
    return Limits(**data.get("limits", {})), NativeSearch(**held), approve


def gave_up(takeovers: int) -> ConfigError:
    """Why a run is not gone on with."""
    return ConfigError(
        "interrupted",
        "searchloop stopped before the answer was finished"
        + (f", {takeovers} times." if takeovers > 1 else "."),
        "What came is kept. Send the question again.",
    )

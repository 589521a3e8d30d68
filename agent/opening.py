"""Sessions as a user opens and changes them: with an agent, a workspace, and choices of their own.

What an agent says is taken where nothing else was chosen; what is said by neither is as the
settings have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.log import EventLog
from agent.presets import Preset, Presets, settings_of
from agent.session import Session
from agent.settings import Settings
from agent.workspace import checked_folder

_CHOICES = ("model", "mode", "search")


def open_session(log: EventLog, settings: Settings, wanted: Mapping[str, Any]) -> Session:
    """A new session; `wanted` may name model, mode, search, workspace and agent (None: not),
    and say that it is `temporary`: for its user's eyes while it is open, and in no list.

    Raises ConfigError for an agent there is not and a folder that cannot be a workspace.
    """
    chosen = {name: value for name, value in wanted.items() if value is not None}
    preset = _preset(settings.home, chosen.pop("agent", None))
    if "workspace" in chosen:
        chosen["workspace"] = checked_folder(chosen["workspace"], settings.home)
    passing = {"temporary": True} if chosen.pop("temporary", False) else {}
    usual = {"model": settings.model, "search": settings.search}
    return log.create_session(
        **{**usual, **_said(preset), **chosen},
        settings={**(settings_of(preset) if preset else {}), **passing},
    )


def change_session(
    log: EventLog, settings: Settings, session_id: str, wanted: Mapping[str, Any]
) -> Session:
    """A session with these changes; None takes an agent or a workspace away.

    Taking an agent sets model, mode and search as that agent says, unless they are named as well.
    Raises ConfigError as `open_session` does, Conflict when there is no such session.
    """
    log.session(session_id)
    chosen = dict(wanted)
    kept: dict[str, Any] = {}
    if "agent" in chosen:
        preset = _preset(settings.home, chosen.pop("agent"))
        kept = settings_of(preset)
        chosen = {**_said(preset), **chosen}
    if "pinned" in chosen:
        kept = {**kept, "pinned": chosen.pop("pinned") or None}
    if chosen.get("workspace") is not None:
        chosen["workspace"] = checked_folder(chosen["workspace"], settings.home)
    return log.update_session(session_id, kept, **chosen)


def _preset(home: Path, name: str | None) -> Preset | None:
    return Presets(home).get(name) if name else None


def _said(preset: Preset | None) -> dict[str, str]:
    """What an agent says of a session's choices."""
    if preset is None:
        return {}
    return {name: getattr(preset, name) for name in _CHOICES if getattr(preset, name) is not None}

"""`current_time`: returns the date and time of this machine, or of a time zone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from searchloop.agent.errors import ToolError
from searchloop.agent.tools import Tool, ToolContext, object_schema, text_schema
from searchloop.agent.types import ToolSpec

_SPEC = ToolSpec(
    name="current_time",
    description="The current date and time: of this machine, or of a time zone.",
    parameters=object_schema({"timezone": text_schema("IANA name, such as Europe/Berlin")}),
    effect="read",
)


def current_time() -> Tool:
    """Returns the tool."""
    return Tool(_SPEC, _run, seconds=5.0, origin="ours")


async def _run(arguments: Mapping[str, Any], context: ToolContext) -> str:
    from zoneinfo import ZoneInfo  # a slow import, and few questions need it

    name = str(arguments.get("timezone", ""))
    try:
        now = datetime.now(ZoneInfo(name)) if name else datetime.now().astimezone()
    except (OSError, ValueError, LookupError) as error:
        what = f"There is no time zone {name[:80]!r}."
        raise ToolError("unknown_timezone", what, "Use a name such as Europe/Berlin.") from error
    return f"{now:%A}, {now.isoformat(timespec='seconds')} ({name or now.tzname()})"

"""Write searchloop/events.py, and the documents' table, from the table in agent/log/events.py.

usage: python scripts/event_types.py [--check]

With --check nothing is written; the exit code is 1 when one of them is stale.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

from searchloop.agent.log import events
from searchloop.agent.log.session import EventData

FIELDS = EventData.__annotations__
ROOT = Path(__file__).resolve().parent.parent
CLASSES, PAGE = ROOT / "searchloop" / "events.py", ROOT / "docs" / "guides" / "library-use.md"
START, END = "<!-- events -->\n", "<!-- /events -->"
ROW = re.compile(r"^\| ([a-z_, ]*)\| (.+) \|$", re.M)
FIELD = re.compile(r"([a-z_]+)(\?)?(?: \(([^)]*)\))?(?:[,;] (?:or )?|,?$)")
INNER = re.compile(r" \(see `[^`]*`\)|, see `[^`]*`")  # where in the code more is told
TEXTS = "tuple[str, ...]"
OBJECT = "Mapping[str, Any]"
OBJECTS = f"tuple[{OBJECT}, ...]"
# What the log holds of a field, and what its class holds; all others are text.
HELD = {
    **{kind: kind for kind in ("int", "bool", "int | None")},
    "list[str]": TEXTS,
    "list[int]": "tuple[int, ...]",
    **dict.fromkeys(("list[dict[str, Any]]", "list[dict[str, str]]"), OBJECTS),
    **dict.fromkeys((OBJECT, "dict[str, Any]"), OBJECT),
}
KINDS = {
    **{name: HELD.get(said.__forward_arg__, "str") for name, said in FIELDS.items()},
    "attachments": "tuple[Attachment, ...]",
    "citations": "tuple[Citation, ...]",
    "sources": "tuple[Source, ...]",
    "tool_calls": "tuple[Call, ...]",
    "usage": "Usage",
    "run_finished.error": OBJECT,
}
EMPTY = {
    "str": '""',
    "int": "0",
    "bool": "False",
    "Usage": "NOTHING",
    OBJECT: "field(default_factory=dict)",
}
HEAD = '''"""The events of a chat as typed values: what `Agent.stream` yields.

from searchloop import events

for event in agent.stream("What is new?"):
    match event:
        case events.TextDelta(text=text):
            print(text, end="")
        case events.SearchFinished(by=engine, results=count):
            print(engine, count)

Each is an `Event` with `seq`, `type`, `data` and `at` (epoch seconds); its fields are what `data`
holds, and empty where that has none. Made by scripts/event_types.py; edit the table in
agent/log/events.py instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, dataclass_transform, get_args

from searchloop.agent.log.session import Event
from searchloop.agent.types import NOTHING, Citation, Source, Usage
from searchloop.agent.types import ToolCall as Call
from searchloop.agent.types.attachments import Attachment


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class _Typed(Event):
    """Makes each class below it a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)
'''


def rows() -> list[tuple[list[str], str]]:
    """The events that share a row, and the words about their fields."""
    found: list[tuple[list[str], str]] = []
    for names, words in ROW.findall(events.__doc__ or ""):
        if names.strip() and names.strip() != "type":
            found.append((names.replace(" ", "").split(","), INNER.sub("", words)))
        elif found and not names.strip():
            found[-1] = (found[-1][0], f"{found[-1][1].rstrip(',')}, {INNER.sub('', words)}")
    return found


def class_of(name: str, words: str) -> str:
    """The source of one class."""
    found = FIELD.findall(words) if FIELD.sub("", words) == "" else []
    told = f'"""`{name}`: {words}."""'
    about = textwrap.fill(told, 96, initial_indent=" " * 4, subsequent_indent=" " * 4)
    lines = [f"class {title(name)}(_Typed):", about, "", f'    type: Literal["{name}"]']
    for field, _, _ in found:
        kind = KINDS.get(f"{name}.{field}") or KINDS[field]
        empty = EMPTY.get(kind, "None" if "None" in kind else "()")
        lines.append(f"    {field}: {kind} = {empty}")
    return "\n".join(lines)


def title(name: str) -> str:
    """The class of an event."""
    return "".join(part.title() for part in name.split("_"))


def module() -> str:
    """The whole of searchloop/events.py, as ruff formats it."""
    pairs = [(name, words) for names, words in rows() for name in names]
    union = f"ChatEvent = ({' | '.join(title(name) for name, _ in pairs)})"
    union += '\n# The discriminator is the text of its annotation: Literal["NAME"].'
    union += "\nCLASSES: Mapping[str, Any] = {"
    union += '\n    each.__annotations__["type"][9:-2]: each for each in get_args(ChatEvent)\n}\n'
    parts = [HEAD, *(class_of(*pair) for pair in pairs), union]
    command = [sys.executable, "-m", "ruff", "format", "-", "--stdin-filename", str(CLASSES)]
    made = subprocess.run(
        command, input="\n\n".join(parts), text=True, capture_output=True, check=True
    )
    return made.stdout


def page() -> str:
    """docs/guides/library-use.md with its table."""
    before, rest = PAGE.read_text("utf-8").split(START)
    lines = [f"| {', '.join(f'`{n}`' for n in names)} | {words} |\n" for names, words in rows()]
    table = "| event | data |\n|---|---|\n" + "".join(lines)
    return f"{before}{START}{table}{END}{rest.split(END)[1]}"


def main(arguments: list[str]) -> int:
    """0 when both are as they should be, now or already."""
    stale = [p for p, text in ((CLASSES, module()), (PAGE, page())) if _text(p) != text]
    if stale and "--check" in arguments:
        print(f"{', '.join(p.name for p in stale)}: stale; run python scripts/event_types.py")
        return 1
    if CLASSES in stale:
        CLASSES.write_text(module(), "utf-8")
    if PAGE in stale:
        PAGE.write_text(page(), "utf-8")
    return 0


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Write the table of search engines into docs/search-backend.md from what the engines say.

usage: python scripts/engine_table.py [--check]

With --check nothing is written; the exit code is 1 when the table is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from search_backend.engines import Engine, find_engines

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "search-backend.md"
START, END = "<!-- engines -->\n", "<!-- /engines -->"
HEAD = (
    "| engine | what it is | needs | may be set | respects by itself | requests a second |\n"
    "|---|---|---|---|---|---|\n"
)


def main(arguments: list[str]) -> int:
    """0 when the table is as it should be, now or already."""
    text = DOCUMENT.read_text("utf-8")
    before, rest = text.split(START)
    fresh = f"{before}{START}{table()}{END}{rest.split(END)[1]}"
    if fresh == text:
        return 0
    if "--check" in arguments:
        print("docs/search-backend.md: the table of engines is stale: scripts/engine_table.py")
        return 1
    DOCUMENT.write_text(fresh, "utf-8")
    return 0


def table() -> str:
    """One line an engine: those that need nothing first."""
    engines = sorted(find_engines().values(), key=lambda e: (bool(e.needs), e.name))
    return HEAD + "".join(line(engine) for engine in engines)


def line(engine: Engine) -> str:
    """What one engine needs and can do."""
    known = {setting.name: setting for setting in engine.settings}
    needs = [
        " or ".join(f"`{n}`" for n in (name, *(known[name].aliases if name in known else ())))
        for name in engine.needs
    ]
    cells = (
        f"`{engine.name}`",
        engine.title if engine.remote else f"{engine.title}, without a network",
        ", ".join(needs) or "nothing",
        ", ".join(f"`{name}`" for name in known if name not in engine.needs) or "-",
        ", ".join(name.replace("_", " ") for name in sorted(engine.applies)) or "-",
        f"{engine.rate:g}" if engine.rate else "-",
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

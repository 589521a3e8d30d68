"""Write the tables of search engines and readers into the documents from what they say themselves.

usage: python scripts/engine_table.py [--check]

With --check nothing is written; the exit code is 1 when the table is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from searchloop.search_backend.engines import Engine, find_engines
from searchloop.search_backend.readers import LOCAL, Service, find_services

ROOT = Path(__file__).resolve().parent.parent
HEAD = (
    "| engine | what it is | needs | may be set | respects by itself | requests a second |\n"
    "|---|---|---|---|---|---|\n"
)
READERS_HEAD = "| reader | what it is | needs | may be set |\n|---|---|---|---|\n"
KINDS = "HTML, PDF, DOCX, ODT, RTF, PPTX, XLSX, XLS, ODS, EPUB, notebooks, mail, feeds, any text"
LOCAL_READER = f"| `{LOCAL}` | {KINDS}, read here | nothing | - |\n"


def main(arguments: list[str]) -> int:
    """0 when the tables are as they should be, now or already."""
    code = 0
    for name, tables in documents().items():
        document = ROOT / name
        text = fresh = document.read_text("utf-8")
        for mark, rows in tables.items():
            start, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
            before, rest = fresh.split(start)
            fresh = f"{before}{start}{rows}{end}{rest.split(end)[1]}"
        if fresh == text:
            continue
        if "--check" in arguments:
            print(f"{name}: a table is stale: scripts/engine_table.py")
            code = 1
        else:
            document.write_text(fresh, "utf-8")
    return code


def documents() -> dict[str, dict[str, str]]:
    """Each table by the document it stands in and the comments round it."""
    return {
        "docs/guides/search-backend.md": {"engines": table(), "readers": readers()},
    }


def table() -> str:
    """One line an engine: those that need nothing first, official sites last."""
    engines = sorted(find_engines().values(), key=lambda e: (bool(e.kinds), bool(e.needs), e.name))
    return HEAD + "".join(line(engine) for engine in engines)


def readers() -> str:
    """One line a reader: ours first."""
    rows = READERS_HEAD + LOCAL_READER
    for service in find_services().values():
        cells = (
            f"`{service.name}`",
            f"{service.title}, elsewhere",
            *settings_of(service),
        )
        rows += f"| {' | '.join(cells)} |\n"
    return rows


def settings_of(part: Engine | Service) -> tuple[str, str]:
    """What it needs, under all names, and what may be set beside."""
    known = {setting.name: setting for setting in part.settings}
    needs = [
        " or ".join(f"`{n}`" for n in (name, *(known[name].aliases if name in known else ())))
        for name in part.needs
    ]
    optional = ", ".join(f"`{name}`" for name in known if name not in part.needs)
    return ", ".join(needs) or "nothing", optional or "-"


def line(engine: Engine) -> str:
    """What one engine needs and can do."""
    cells = (
        f"`{engine.name}`",
        f"{engine.title}{'' if engine.remote else ', without a network'}{' *' * engine.untested}",
        *settings_of(engine),
        ", ".join(name.replace("_", " ") for name in sorted(engine.applies)) or "-",
        f"{engine.rate:g}" if engine.rate else "-",
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

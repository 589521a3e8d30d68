"""The pages of other programs: what connects each is what the settings show, and it runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.docs.conftest import ROOT
from tests.docs.test_examples import BLOCKS, Block
from tests.web.faces import KEY, MODEL, desk

PAGES = {page.stem: page.read_text("utf-8") for page in (ROOT / "docs/programs").glob("*.md")}
LINES = json.loads((ROOT / "web/static/app/programs.json").read_text("utf-8"))
BASE = "http://127.0.0.1:8321"
OWN = [block for block in BLOCKS if block.place.startswith("docs/programs/")]
CLIENTS = ROOT / "build" / "clients" / "bin" / "python"
NODE = ROOT / "tests" / "clients" / "node"


def slug(name: str) -> str:
    """The file of a program's page."""
    return name.lower().replace(" ", "-")


def test_each_page_says_what_connects_it_and_what_it_sees() -> None:
    """In the same form, short, and named in the guide."""
    guide = (ROOT / "docs/guides/other-programs.md").read_text("utf-8")
    assert len(PAGES) >= 14
    for name, text in PAGES.items():
        assert f"(../programs/{name}.md)" in guide, name
        heads = re.findall("^## (.+)$", text, re.M)
        assert heads[-2:] == ["What it can see", "What it cannot"], name
        assert {"As tools", "As the model"} & set(heads), name
        assert text.count("\n") < 80, name


@pytest.mark.parametrize("name", LINES)
def test_the_settings_show_the_lines_of_the_page(name: str) -> None:
    """With another address and key they are the same."""
    shown = [block.code for block in OWN if block.place.startswith(f"docs/programs/{slug(name)}.")]
    for lines in LINES[name].values():
        assert lines.replace("{at}", BASE).replace("{key}", "TOKEN") + "\n" in shown


def test_what_a_program_reads_can_be_read() -> None:
    """JSON, TOML and YAML."""
    readers = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
    read = [readers[block.language](block.code) for block in OWN if block.language in readers]
    assert len(read) > 8


# Two clients are among the packages of the tests. `make clients` installs the others and runs their
# pages; then `make integration` runs those in Python too. A fresh clone, as CI has it, has none.
HERE = "from (openai|anthropic) import"
COMMANDS = {"python": [CLIENTS, "-c"], "js": ["node", "--input-type=module", "-e"]}
MARKS = {
    "python": [pytest.mark.clients, *([pytest.mark.integration] if CLIENTS.exists() else [])],
    "js": pytest.mark.clients,
}
RUN = [
    pytest.param(block, id=block.place, marks=() if here else MARKS[block.language])
    for block in OWN
    if block.language in COMMANDS
    for here in [re.match(HERE, block.code)]
]


@pytest.mark.parametrize("block", RUN)
def test_the_program_on_the_page_runs(block: Block, tmp_path: Path) -> None:
    """At a real server, with our search."""
    command = [sys.executable, "-c"] if re.match(HERE, block.code) else COMMANDS[block.language]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with desk(tmp_path / "home", SEARCH_ENGINES="library", SEARCHLOOP_MODEL=MODEL) as at:
        code = block.code.replace(BASE, at.running.serving.base).replace("TOKEN", KEY)
        done = subprocess.run(
            [*command, code], cwd=NODE, env=env, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert "may search [1]." in done.stdout
    if "url" in block.code.replace("base_url", ""):
        assert "library://docs/" in done.stdout

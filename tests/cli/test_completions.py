"""Examples in each `--help`, and completions in the shells that there are."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from searchloop.cli.main import COMMANDS, parse, parser_of
from searchloop.cli.sessions import _ACTIONS as SESSIONS
from searchloop.cli.terminal.examples import ELSEWHERE, subparsers
from tests.cli.conftest import Cli
from tests.tables import each_row

PARSERS = dict(subparsers(parser_of(None)))
EXAMPLES = sorted(
    {
        line.strip()
        for parser in PARSERS.values()
        for line in (parser.epilog or "").splitlines()
        if line.strip().startswith("searchloop")
    }
)


def words(example: str) -> list[str]:
    """What the program gets of a command line: no comment, and no file that the shell opens."""
    found = shlex.split(example, comments=True)[1:]
    return found[: next((i for i, word in enumerate(found) if word in ("<", ">", ">>")), None)]


def test_each_help_ends_with_examples(cli: Cli) -> None:
    """Also that of the commands below a command."""
    assert len(PARSERS) > 40
    assert {prog.split()[1] for prog in PARSERS} == set(COMMANDS)
    lacking = [prog for prog, each in PARSERS.items() if "searchloop" not in (each.epilog or "")]
    assert lacking == []
    assert "searchloop ask" in (parser_of("").epilog or "")
    for shell in ("zsh", "fish", "powershell"):
        assert "searchloop" in cli("completions", shell).out


def test_words_from_elsewhere_lead_to_commands_there_are() -> None:
    """Each is named with one that can be typed."""
    known = {prog.removeprefix("searchloop ") for prog in PARSERS}
    known |= {f"sessions {action}" for action in SESSIONS}
    assert set(ELSEWHERE.values()) <= known


@each_row("example", EXAMPLES)
def test_each_example_can_be_typed(example: str) -> None:
    """The parser takes it; none is longer than a narrow window."""
    assert parse(words(example)).run
    assert len(example) <= 98


def test_every_example_of_the_file_is_shown() -> None:
    """One for a command that is gone would stand there for nobody."""
    file = Path(parser_of.__code__.co_filename).parent / "terminal" / "examples.txt"
    named = {tuple(words(line)[:1]) for line in file.read_text("utf-8").splitlines()}
    assert named - {(name,) for name in COMMANDS} == {()}


COMPLETE = """
source {script}
COMP_WORDS=({typed})
COMP_CWORD={last}
COMP_LINE="{line}"
COMP_POINT=${{#COMP_LINE}}
_shtab_searchloop
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(cli: Cli, tmp_path: Path, *typed: str) -> set[str]:
    """What bash offers for the last word."""
    script = tmp_path / "completions.bash"
    if not script.exists():
        script.write_text(cli("completions", "bash").out, "utf-8")
    told = " ".join(shlex.quote(word) for word in typed)
    code = COMPLETE.format(script=script, typed=told, last=len(typed) - 1, line=" ".join(typed))
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    ran = subprocess.run(
        ["bash", "--norc", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=env,
    )
    assert ran.stderr == ""
    return set(ran.stdout.split())


def test_bash_completes_commands_options_values_and_files(cli: Cli, tmp_path: Path) -> None:
    """In the shell itself."""
    (tmp_path / "report.pdf").write_bytes(b"")
    assert {"ask", "chat", "models"} <= completed(cli, tmp_path, "searchloop", "")
    assert {"search", "search-backend"} == completed(cli, tmp_path, "searchloop", "searc") - {""}
    assert "--schema" in completed(cli, tmp_path, "searchloop", "ask", "--s")
    assert {"plan"} == completed(cli, tmp_path, "searchloop", "ask", "--mode", "p")
    assert "pull" in completed(cli, tmp_path, "searchloop", "models", "p")
    assert "report.pdf" in completed(cli, tmp_path, "searchloop", "ask", "-f", "rep")
    command = tmp_path / "searchloop"  # which the script calls for names
    command.write_text('#!/bin/sh\ntest "$1 $2" = "completions --names" && echo "$3:b"\n')
    command.chmod(0o700)
    for typed, kind in (("ask -m", "models"), ("chat --session", "sessions"), ("ask -a", "agents")):
        assert f"{kind}:b" in completed(cli, tmp_path, "searchloop", *typed.split(), kind[0])
    assert "engines:b" in completed(cli, tmp_path, "searchloop", "search", "--engine", "e")
    assert "servers:b" in completed(cli, tmp_path, "searchloop", "mcp", "test", "s")


KNOWN = {"models": "builtin:extractive", "agents": "researcher", "engines": "brave"}
KNOWN |= {"readers": "local", "providers": "ollama"}


def test_names_are_those_of_now(cli: Cli) -> None:
    """One on a line; also the chats that are stored."""
    told = cli("ask", "Hello", "-o", "json").json
    assert cli("mcp", "add", "wiki", "--url", "https://mcp.example.com/mcp").code == 0
    for kind, known in {**KNOWN, "servers": "wiki", "sessions": told["session_id"]}.items():
        ran = cli("completions", "--names", kind)
        assert (ran.code, ran.err, known in ran.out.split("\n")) == (0, "", True), kind

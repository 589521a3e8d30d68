"""Wrong inputs at the terminal: no traceback, one sentence, and each answer names the remedy."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import closing
from pathlib import Path

import pytest

from searchloop.agent.log import EventLog
from tests.attached import LOCKED_PDF
from tests.cli.conftest import Cli

# What is typed -> a word of the remedy.
WRONG = {
    "aks hi": "did you mean ask",
    "comp": "did you mean completions",
    "undo": "did you mean sessions undo? to ask it as it is: `searchloop ask undo`",
    "improt": "did you mean sessions import",
    "login": "did you mean setup",
    "ls": "did you mean models",
    "sessions improt x.json": "did you mean import",
    "mcp lst": "did you mean list",
    "search-backend": "serve",
    "completions": "shell is missing",
    "ask ''": "question",
    "ask hi -m nothing-of-the-kind": "provider:model",
    "ask hi -m builtin:": "provider:model",
    "ask hi -m extractiv": "did you mean extractive",
    "ask hi -m extractive:7b": "asked: builtin",
    "ask hi -m opnai:gpt-9": "did you mean openai:gpt-9",
    "ask hi -m openai:gpt-9": "openai_api_key",
    "ask hi -m builtin:x": "no model builtin:x",
    "ask hi -m ollama:small": "ollama serve",
    "ask hi --search native": "choose local search",
    "ask hi -m builtin:extractive --option seed=1": "builtin takes no option seed",
    "ask hi -m builtin:extractive --schema good.json": "choose a language model",
    "ask hi --schema no.json": "no.json is not json",
    "ask hi --schema bad.json": "the schema is not valid: at $.type",
    "ask hi --workspace .": "it holds everything you have",
    "ask --run-plan": "no session was named",
    "ask hi -m openai": "openai:",
    "ask hi --mode agnt": "agent",
    "ask hi --max-steps 0": "at least 1",
    "ask hi --max-steps many": "whole number",
    "ask hi --max-cost -1": "above 0",
    "ask hi --max-seconds nan": "above 0",
    "ask hi -f nowhere.txt": "nowhere.txt",
    "ask hi -f .": "check the path",
    "ask hi --schema nowhere.json": "file",
    "ask hi --option temperature": "key=value",
    "ask hi --option heat=1": "temperature",
    "ask hi --option temperature=9": "0 to 2",
    "ask hi --session nowhere": "sessions",
    "ask hi -c": "session",
    "ask hi --agent codr": "did you mean coder",
    "ask hi --project nowhere": "projects",
    "ask hi --workspace nowhere": "folder",
    "ask hi --domain http://": "example.org",
    "ask hi -s @nowhere.txt": "file",
    "ask hi --colour": "searchloop ask --help",
    "ask hi --sytem x": "did you mean --system",
    "ask hi --run-plan": "question",
    "chat --agent nobody": "agents",
    "search": "query is missing",
    "search ' '": "write what to search for",
    "search x --block-domain 'a b'": "blocked_domains[0] is not a domain",
    "search x --country Germany": "country is not a code of two letters",
    "search x --engine gogle": "choose one of arxiv",
    "search x -n 0": "at least 1",
    "search x --time-range h": "choose from d, w, m",
    "open https://a.example/ --reader locl": "did you mean local",
    "open https://a.example/ --offset -1": "whole number",
    "open https://a.example/ --domain '*.a.example'": "allowed_domains[0] is not a domain",
    "open ''": "write the address",
    "open ftp://a.example/": "not an absolute http or https address",
    "open": "url is missing",
    "open not-an-address": "http",
    "open http://127.0.0.1/": "public",
    "check '' x.txt": "the claim is empty",
    "check x": "there is no source",
    "check x nowhere.txt": "nowhere.txt could not be read",
    "check x a.example/x": "check the path, or begin with https://",
    "check x blob.bin": "blob.bin could not be read: a binary file",
    "check x empty.txt": "empty.txt could not be read: no text in it",
    "check x locked.pdf": "this pdf needs a password. save a copy",
    "check x locked.zip": "an archive with a password. save it",
    "check x locked.xlsx": "an office file with a password. save it",
    "check x large.txt": "large.txt is larger than 10 mb",
    "check x file:///tmp/a%00b": "embedded null byte",
    "check x 'https://a b.example/'": "searchloop_offline is set",
    "check x lost.txt": "the source holds no readable text",
    "check x page.txt --batch a.jsonl": "--batch brings its own claims",
    "check --batch nowhere.jsonl": "nowhere.jsonl could not be read",
    "check --batch lines.jsonl": "line 2: this is no json",
    "check /etc/passwd 'The sky is blue.'": "the claim comes first",
    "check x nowhere.txt --fail-on wrong": "contradicted",
    "audit nowhere.md": "nowhere.md could not be read",
    "audit empty.txt": "empty.txt",
    "audit large.txt": "larger than 10 mb",
    "audit page.txt --fail-on wrong": "'wrong' is none of contradicted",
    "models default nothing-at-all": "provider:model",
    "library add nowhere": "nowhere",
    "library remove nowhere": "is not in the library",
    "library remove docs": "which are always in the library",
    "mcp add": "a server needs a name",
    "mcp test nobody": "searchloop mcp add",
    "mcp add x --url https://x.example -- y": "a command or an address",
    "mcp add x --env A -- y": "name=value",
    "mcp add x --url ftp://x.example": "http",
    "sessions restore nowhere.db": "nowhere.db",
    "sessions delete nowhere": "session",
    "sessions delete": "delete ID",
    "sessions backup": "backup",
    "sessions export page.txt": "name another, or remove this one",
    "--nope": "--nope is not understood",
    "config set NAME x": "'set NAME x' is not understood",
    "sessions import nowhere.json": "nowhere.json",
    "export": "no session yet",
    "export nowhere": "no session 'nowhere'",
    "agents show nobody": "agents",
    "agents create coder": "coder",
    "agents create Big": "big",
    "agents delete coder": "coder",
    "setup --engine gogle": "choose one of arxiv,",
    "setup --engine brave": "brave lacks brave_api_key. add --key-stdin",
    "setup --engine brave --key-stdin": "what was given for brave_api_key is no",
    "setup --engine searxng": "add --set searxng_url=...",
    "setup --engine ddg --key-stdin": "ddg takes no key",
    "setup --engine ddg --reader jina": "--reader: not allowed with argument --engine",
    "setup --set SEARCH_ENGINES": "'search_engines' is not name=value",
    "setup --set SEARCH_ENGINES=ddg,nope": "search_engines names 'nope'",
    "setup --set BRAVE_API_KEY=k-0123456789": "keys do not belong on the command line",
    "setup --provider opnai": "did you mean openai",
    "setup --set SEARCH_ENGINS=ddg": "did you mean search_engines",
    "setup --key-stdin": "--engine",
    "export --format pdf": "choose from md",
    "agents edit coder": "agents edit -h",
    "serve --port 99999999": "65535",
    "search-backend serve --host 0.0.0.0 --port 0": "searchloop_token",
}
# A search may look like a command, and whether an address is public is found out by asking.
CODES = {"sessions improt x.json": 0, "open http://127.0.0.1/": 1, "ask hi -m ollama:small": 1}
HERE = {"COLUMNS": "40", "TERM": "dumb", "NO_COLOR": "1", "OLLAMA_HOST": "127.0.0.1:9"}
SAID = "The bridge was opened in 1931. It carries 81,365 cars a day.\n"
OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le")
FILES = {
    "page.txt": SAID.encode(),
    "empty.txt": b" \n",
    "blob.bin": bytes(range(256)) * 9,
    "lost.txt": ("\ufffd" * 9 + "a").encode() * 20,
    "locked.pdf": LOCKED_PDF,
    "locked.zip": b"PK\x03\x04\x14\0\1\0" + bytes(range(256)),
    "locked.xlsx": OFFICE,
    "no.json": b"{",
    "bad.json": b'{"type": "thing"}',
    "good.json": b'{"type": "object", "properties": {"city": {"type": "string"}}}',
    "lines.jsonl": json.dumps({"id": 1, "claim": "a b", "text": "c"}).encode() + b"\n{no json",
}


@pytest.fixture(autouse=True)
def world(tmp_path: Path) -> None:
    """Files that no command can use, or not so."""
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    with (tmp_path / "large.txt").open("wb") as large:
        large.truncate(100 * 2**20)


@pytest.mark.parametrize("typed", WRONG)
def test_a_wrong_input_names_the_remedy(cli: Cli, typed: str, tmp_path: Path) -> None:
    """On stderr, in words, without colours; the exit code is that of bad input or of a failure; no
    key is repeated, and nothing is kept.
    """
    words = shlex.split(typed)
    online = {"SEARCHLOOP_OFFLINE": ""} if words[0] == "open" else {}
    ran = cli(*words, **HERE, **online)
    assert ran.code == CODES.get(typed, 2)
    assert "\x1b" not in ran.err + ran.out
    assert "0123456789" not in ran.err + ran.out
    assert WRONG[typed].lower() in re.sub(r"\s+", " ", ran.err).lower()
    home = tmp_path / "home"
    assert not {"keys.json", "config.toml"} & {path.name for path in home.glob("*")}
    if ran.code == 2 and (home / "sessions.sqlite3").exists():
        with closing(EventLog(home / "sessions.sqlite3")) as log:
            assert (log.sessions(), log.projects.all()) == ([], [])

"""The measure of the built-in model reads SQuAD's form and asks in both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.extractive import main, quoted

FACTS = {
    "bridge": (
        "The Lindhaug bridge was opened in 1931 by Ada Crane.",
        "Who opened it?",
        "Ada Crane",
    ),
    "ferry": ("The ferry to Storvik leaves the pier at seven.", "When does it leave?", "seven"),
}


def article(name: str, number: int) -> dict[str, Any]:
    """An article of one paragraph and one question."""
    text, _, right = FACTS[name]
    question = f"{'Who opened the Lindhaug bridge' if name == 'bridge' else 'Where is Everest'}?"
    qa = {"question": question, "answers": [{"text": right}]}
    return {"paragraphs": [{"context": f"{text} It is number {number}.", "qas": [qa]}]}


def test_a_run_prints_both_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the library holds is quoted, and what it does not hold is refused."""
    every = [article("bridge" if n == 0 else "ferry", n) for n in range(24)]
    (tmp_path / "xquad.en.json").write_text(json.dumps({"data": every}), "utf-8")
    (tmp_path / "xquad.de.json").write_text(json.dumps({"data": every}), "utf-8")
    assert main(["--xquad", str(tmp_path), "--lang", "en", "--questions", "12"]) == 0
    out = capsys.readouterr().out
    rows = {line[:14].strip(): line[14:].split() for line in out.splitlines()[1:]}
    assert rows.keys() == {"en own part", "en end to end"}
    assert all(row[1] == "100.0%" for row in rows.values()), out
    assert all(float(row[0].rstrip("%")) > 0 for row in rows.values()), out


def test_an_answer_counts_where_it_is_quoted() -> None:
    """Case, white space and the shape of inner quotation marks do not count; other words do."""
    answer = 'These match:\n\n- “It was  "Ada" CRANE who came.” [1]\n\nSeven'
    assert quoted(answer, ["“ada” crane"])
    assert not quoted(answer, ["Seven"])

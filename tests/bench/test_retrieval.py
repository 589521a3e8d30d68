"""The measurement of search: it reads both collections and counts what it should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.retrieval import cranfield, main, measure, squad


def paragraph(text: str, *questions: str) -> dict[str, object]:
    """One paragraph in SQuAD's form."""
    return {"context": text, "qas": [{"question": q} for q in questions]}


def test_it_measures_a_folder_of_paragraphs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line for the library, with its shares."""
    texts = [
        paragraph("The harbour freezes in winter.", "When does the harbour freeze?"),
        paragraph("The lighthouse was built of stone.", "What is the lighthouse made of?", "Why?"),
    ]
    (tmp_path / "x.en.json").write_text(json.dumps({"data": [{"paragraphs": texts}]}), "utf-8")
    assert main(["--xquad", str(tmp_path)]) == 0
    line = capsys.readouterr().out.splitlines()[1].split()
    assert line[:3] == ["en", "library", "0.667"]
    assert line[4] == "1"
    collection = squad(tmp_path / "x.en.json")
    right = measure(lambda question: [0] if "harbour" in question else [1], collection)
    assert (right.first, right.gain, right.empty) == (1.0, 1.0, 0)
    assert measure(lambda question: [], collection).empty == 3


def test_cranfield_counts_titles_and_every_degree_of_relevance(tmp_path: Path) -> None:
    """But not what is marked as irrelevant."""
    (tmp_path / "cran.all.1400").write_text(".I 1\n.T\none\n.A\nx\n.B\ny\n.W\nbody\n")
    (tmp_path / "cran.qry").write_text(".I 001\n.W\nwhat is one\n")
    (tmp_path / "cranqrel").write_text("1 1 4\n1 2 -1\n")
    found = cranfield(tmp_path)
    assert found.texts == ["one\n\nbody\n"]
    assert found.questions == [("what is one", {0: 1, 1: 0})]

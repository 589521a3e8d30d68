"""The measure of verdicts reads the data sets' forms and prints its tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.support import main

TEXT = "The bridge was opened in 1931 by Ada Crane. It carries about 81,365 cars a day."


def test_a_run_prints_every_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Labels of both kinds, articles in two languages, and our own cases as wanted."""
    attributed = {"claim": "The bridge was opened in 1931.", "references": [TEXT]}
    label = {"attribution_label": "attributable", "src_dataset": "A"}
    (tmp_path / "a.jsonl").write_text(json.dumps(attributed | label), "utf-8")
    supported = {"claim": "It carries 5 cars.", "evidence": [TEXT], "label": "not_supported"}
    (tmp_path / "w.jsonl").write_text(json.dumps(supported), "utf-8")
    (tmp_path / "x").mkdir()
    for lang in ("en", "de"):
        articles = {"data": [{"paragraphs": [{"context": TEXT}]}]}
        (tmp_path / "x" / f"x.{lang}.json").write_text(json.dumps(articles), "utf-8")
    files = [str(tmp_path / name) for name in ("a.jsonl", "w.jsonl")]
    assert main(["--xquad", str(tmp_path / "x"), "--labelled", *files, "--ablate"]) == 0
    out = capsys.readouterr().out
    assert ", 0 otherwise than wanted" in out
    assert "translated" in out
    assert ", 0 true ones" in out
    for said in ("a (supported+quoted)", "a A (supported)", "w (supported)", "without"):
        assert said in out

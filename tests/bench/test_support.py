"""The measure of verdicts reads the data sets' forms and prints its tables."""

from __future__ import annotations

import json
import subprocess
import sys
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


def test_each_condition_is_told_with_what_it_is_worth(tmp_path: Path) -> None:
    """What changes a verdict stands first; a process of its own, since it changes the modules."""
    file = tmp_path / "own.txt"
    claims = ["true | The bridge was opened in 1931.", "untrue | The bridge was opened in 1981."]
    file.write_text("\n".join(["==", TEXT, "--", *claims]), "utf-8")
    command = [sys.executable, "-m", "bench.conditions", str(file), "--of", "check"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    changing, _, idle = done.stdout.partition("no verdict of these sets changes without:")
    assert "2 claims" in changing
    assert "not found.fault" not in idle
    assert " 1      0     1  check:" in changing
    assert "page.text.strip()" in idle

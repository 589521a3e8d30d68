"""The scorer for main text counts as the benchmarks' authors do, on pages laid out as theirs."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest

from bench.extraction import by_runs, by_words, is_held, main, wcxb

TEXT = "The harbour was built in three stages and each of them is described here at length. "
PAGE = f"<title>T</title><main>{f'<p>{TEXT * 3}</p>' * 4}</main><nav><a href=/>Home</a></nav>"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Both benchmarks with a page or two each."""
    for folder in ("wcxb/dev/ground-truth", "wcxb/dev/html", "zyte/html"):
        (tmp_path / folder).mkdir(parents=True)
    for number, host in enumerate(("one.example", "two.example", "five.example", "a.example")):
        truth = {
            "url": f"https://{host}/",
            "_internal": {"page_type": {"primary": "article"}},
            "ground_truth": {"main_content": TEXT * 12},
        }
        name = f"{number:04}"
        (tmp_path / f"wcxb/dev/ground-truth/{name}.json").write_text(json.dumps(truth), "utf-8")
        (tmp_path / f"wcxb/dev/html/{name}.html.gz").write_bytes(gzip.compress(PAGE.encode()))
    truths = {"x": {"url": "https://e.example/", "articleBody": TEXT * 12}}
    (tmp_path / "zyte/ground-truth.json").write_text(json.dumps(truths), "utf-8")
    (tmp_path / "zyte/html/x.html.gz").write_bytes(gzip.compress(PAGE.encode()))
    return tmp_path


def test_a_run_prints_both_benchmarks(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pages that hold the right text score 1, by type and together."""
    assert main(["--data", str(data), "--part", "all", "--alone"]) == 0
    table = capsys.readouterr().out
    assert "| wcxb | 4 | ours | 1.000 | 1.000 | 1.000 |" in table
    assert "| zyte | 1 | ours | 1.000 | 1.000 | 1.000 |" in table


def test_no_host_is_in_both_parts(data: Path) -> None:
    """The parts are split by site, and together they are all pages."""
    parts = {part: list(wcxb(data / "wcxb", part)) for part in ("train", "held", "all")}
    assert len(parts["train"]) + len(parts["held"]) == len(parts["all"]) == 4
    assert all(is_held(sample.url) for sample in parts["held"])
    assert is_held("https://www.one.example/a") == is_held("https://one.example/b")


def test_the_test_split_is_no_part_of_the_others(data: Path) -> None:
    """It is read from a folder of its own, so that nothing is fitted by it."""
    assert list(wcxb(data / "wcxb", "test")) == []
    (data / "wcxb/dev").rename(data / "wcxb/test")
    assert len(list(wcxb(data / "wcxb", "test"))) == 4
    assert list(wcxb(data / "wcxb", "all")) == []


def test_words_are_counted_whatever_their_order() -> None:
    """Two of three words found, one too many; nothing for nothing is right."""
    precision, recall, f1 = by_words("b a x", "A b c")
    assert (precision, recall, round(f1, 4)) == (2 / 3, 2 / 3, 0.6667)
    assert by_words("", "") == (1.0, 1.0, 1.0)
    assert by_words("a", "") == (0.0, 0.0, 0.0)


def test_runs_of_four_words_are_counted() -> None:
    """A word in the middle breaks four of them; a short text is one run."""
    assert by_runs("a b c d e", "a b c d e") == (1.0, 1.0, 1.0)
    assert by_runs("a b c d x", "a b c d e")[:2] == (0.5, 0.5)
    assert math.isnan(by_runs("", "a")[0])

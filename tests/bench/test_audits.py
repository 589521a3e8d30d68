"""Generated reports with planted faults: what an audit has to find, and whom it must not accuse."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.audits import FAULTS, main, measure, sources


def test_planted_faults_are_found_and_true_sentences_are_not_accused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In each of nine styles; a page that could not be fetched accuses nobody."""
    counts = measure(45, sources(None))
    assert set(counts) == {*FAULTS, "true", "fetch"}
    faults = sum((counts[fault] for fault in FAULTS), Counter[str]())
    assert faults["found"] >= 0.95 * faults["all"]
    assert all(counts[fault]["found"] >= 0.9 * counts[fault]["all"] for fault in FAULTS)
    assert counts["true"]["accused"] <= 0.02 * counts["true"]["all"]
    assert counts["true"]["paired"] >= 0.98 * counts["true"]["all"]
    assert counts["fetch"]["accused"] == 0
    assert main(["--reports", "2"]) == 0
    assert "all faults" in capsys.readouterr().out

"""`searchloop check`: one claim against a file, or a batch of them, without a model."""

from __future__ import annotations

import json
from pathlib import Path

from tests.attached import LOCKED_PDF
from tests.cli.conftest import Cli

PAGE = "The bridge was opened in 1931. It carries 81,365 cars a day.\n"


def test_a_claim_is_held_against_a_file(cli: Cli, tmp_path: Path) -> None:
    """The verdict, its reason and the passage, as text and as JSON."""
    (tmp_path / "page.md").write_text(PAGE, "utf-8")
    ran = cli("check", "The bridge was opened in 1932.", "page.md")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0].startswith("contradicted: ")
    assert "The bridge was opened in 1931." in ran.out
    told = cli("check", "It carries 81 365 cars a day", "page.md", "-o", "json").json
    assert told["verdict"] == "supported"
    assert PAGE[told["start"] : told["end"]] == told["passage"]


def test_a_web_page_in_a_file_is_read_as_text(cli: Cli, tmp_path: Path) -> None:
    """Its markup is no part of what it says."""
    html = f"<html><body><main><p>{PAGE * 5}</p></main></body></html>"
    (tmp_path / "page.html").write_text(html, "utf-8")
    assert cli("check", "The bridge was opened in 1931.", "page.html").out.startswith("supported")


def test_an_address_goes_through_the_search_backend(cli: Cli) -> None:
    """A document of the library is a page like any other; one that is missing is named."""
    ran = cli(
        "check",
        "The licence of this program is the MIT licence.",
        "library://docs/README.md",
        "-o",
        "json",
    )
    assert (ran.code, ran.json["verdict"]) == (0, "unclear"), ran.err
    ran = cli("check", "A claim.", "library://docs/missing.md")
    assert (ran.code, ran.out) == (2, "")
    assert "library://docs/missing.md could not be read: " in ran.err


def test_every_kind_of_source_is_read(cli: Cli, tmp_path: Path) -> None:
    """Stdin as a file is, in any charset and as PDF; the address of a file; a scheme is no path."""
    said = "Die Brücke wurde 1932 eröffnet."
    for body in (said.encode("latin-1"), said.encode("utf-16"), f"<p>{said}</p>".encode()):
        assert cli("check", said, "-", stdin=body).out.startswith("supported: ")
    ran = cli("check", said, "-", stdin=LOCKED_PDF)
    assert (ran.code, ran.out) == (2, "")
    assert "stdin could not be read: This PDF needs a password." in ran.err
    assert "stdin is larger than 10 MB." in cli("check", said, "-", stdin=b"a " * 6_000_000).err
    (tmp_path / "ü 1.txt").write_text(said, "utf-8")
    assert cli("check", said, (tmp_path / "ü 1.txt").as_uri()).out.startswith("supported: ")
    assert "ftp://a.example/ could not be read: " in cli("check", said, "ftp://a.example/").err


def test_the_nearest_words_are_told_as_such(cli: Cli, tmp_path: Path) -> None:
    """A passage below `misquoted` and `unclear` is not what the verdict rests on; it is text."""
    (tmp_path / "page.md").write_text("| Bridge | **opened** 1931 |\n", "utf-8")
    told = cli("check", "Many like to walk on the bridge that was opened late.", "page.md").out
    assert told.startswith("unclear: ")
    assert told.endswith("\n  The nearest words there: Bridge · opened 1931\n")


def test_bad_input_is_named(cli: Cli, tmp_path: Path) -> None:
    """Each in one sentence on stderr, with the code of bad input."""
    (tmp_path / "blob.bin").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "page.txt").write_text(PAGE, "utf-8")
    (tmp_path / "empty.txt").write_text(" \n", "utf-8")
    (tmp_path / "locked.pdf").write_bytes(LOCKED_PDF)
    (tmp_path / "locked.zip").write_bytes(b"PK\x03\x04\x14\0\1\0" + bytes(range(256)))
    office = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le")
    (tmp_path / "locked.xlsx").write_bytes(office)
    (tmp_path / "utf37.txt").write_bytes(PAGE.encode("cp500") * 9)
    with (tmp_path / "large.txt").open("wb") as large:
        large.truncate(100 * 2**20)
    for words, told in (
        (("check",), "The claim is empty."),
        (("check", " ", "page.txt"), "The claim is empty."),
        (("check", "A claim."), "There is no source."),
        (("check", "A claim.", "missing.txt"), "missing.txt could not be read"),
        (("check", "A claim.", "a.example/x"), "Check the path, or begin with https://."),
        (("check", "A claim.", "blob.bin"), "blob.bin could not be read: a binary file."),
        (("check", "A claim.", "empty.txt"), "empty.txt could not be read: no text in it."),
        (("check", "A claim.", "locked.pdf"), "read: This PDF needs a password. Save a copy"),
        (("check", "A claim.", "locked.zip"), "read: an archive with a password. Save it"),
        (("check", "A claim.", "locked.xlsx"), "read: an Office file with a password. Save it"),
        (("check", "A claim.", "large.txt"), "large.txt is larger than 10 MB."),
        (("check", "A claim.", "utf37.txt"), "The source holds no readable text."),
        (("check", "A claim.", "page.txt", "--batch", "a.jsonl"), "--batch brings its own claims."),
        (("check", "--batch", "missing.jsonl"), "missing.jsonl could not be read"),
    ):
        ran = cli(*words)
        assert (ran.code, ran.out) == (2, ""), words
        assert told in ran.err
        assert ran.err.count("\n") == 1


def test_a_batch_answers_line_by_line(cli: Cli, tmp_path: Path) -> None:
    """A line that is no question is named, and the others are answered."""
    asked = [
        {"id": "a", "claim": "The bridge was opened in 1931.", "text": PAGE},
        {"id": 2, "claim": "The bridge was never opened in 1931.", "text": PAGE},
        {"id": 3, "claim": "", "text": PAGE},
    ]
    lines = [json.dumps(line) for line in asked]
    lines[1:1] = ["{no json", '{"id": NaN, "claim": "a b", "text": "c"}', '{"id": 9}', ""]
    (tmp_path / "batch.jsonl").write_text("\n".join(lines), "utf-8")
    ran = cli("check", "--batch", "batch.jsonl")
    assert ran.code == 2
    assert [(e["id"], e["verdict"]) for e in ran.events] == [
        ("a", "supported"),
        (2, "contradicted"),
        (3, "unclear"),
    ]
    assert set(ran.events[0]) == {"id", "verdict", "passage", "reason"}
    assert "line 2: this is no JSON." in ran.err
    assert "line 3: this is no JSON." in ran.err
    assert 'line 4: an object with "id", "claim" and "text" is needed.' in ran.err

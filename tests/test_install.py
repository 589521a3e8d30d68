"""`make run` shows what it does while it installs, and ends in one sentence where it cannot."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import install
from scripts.install import LOCKS, ROOT, show_progress

PIP = [
    "Looking in indexes: https://x.example/simple\n",
    *(
        f"Collecting name{n}==1.{n} (from -r requirements.lock (line {n}))\n"
        f"  Downloading name{n}-1.{n}-py3-none-any.whl (10 kB)\n"
        for n in range(1, 26)
    ),
    "ERROR: No matching distribution found for other==2\n",
    "Installing collected packages: name1, name2\n",
    "Successfully installed name1-1.1\n",
]
LINES = [line + "\n" for line in "".join(PIP).splitlines()]


def test_progress_is_a_line_on_a_terminal_and_a_line_now_and_then_in_a_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a terminal it is gone in the end; what pip says is wrong is not lost. A log gets none for
    each of sixty packages, and no order for a terminal.
    """
    others = show_progress(LINES, 25, live=True)
    out = capsys.readouterr().out
    assert "\n" not in out
    assert "searchloop: 1 of 25: name1" in out
    assert "searchloop: unpacking packages" in out
    assert out.endswith("\r\x1b[K")
    assert others[0].startswith("ERROR: No matching")
    show_progress(LINES, 25, live=False)
    told = capsys.readouterr().out.splitlines()
    assert told == [
        "searchloop: 10 of 25: name10",
        "searchloop: 20 of 25: name20",
        "searchloop: unpacking packages",
    ]


def test_an_old_python_is_told_what_to_do() -> None:
    """The sentence names the version that is needed and the one that was found; so old a Python
    gets as far as saying it.
    """
    with pytest.raises(install.Problem, match=r"3\.11 or newer.*python3 is 3\.9\.2.*PYTHON="):
        install.check_python((3, 9, 2), "python3")
    install.check_python((3, 11, 0), "python3")
    ast.parse((ROOT / "scripts" / "install.py").read_text("utf-8"), feature_version=(3, 6))
    make = ["make", "-C", str(ROOT), "run", "PYTHON=python9"]
    told = subprocess.run(make, capture_output=True, text=True, check=False)
    assert "python9 is older or missing. Install one, or name another" in told.stderr


def test_a_python_without_venv_is_told_which_package_to_install(tmp_path: Path) -> None:
    """Debian keeps ensurepip in a package of its own; the sentence names it."""
    code = (
        "import pathlib, sys; sys.modules['ensurepip'] = None; from scripts import install; "
        "install.make_venv(pathlib.Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / ".venv")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert "apt-get install python3-venv" in done.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder that looks installed: the pinned files, a .venv with an interpreter, a stamp."""
    for name in ("pyproject.toml", *LOCKS.values()):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    python = install.python_of(tmp_path / ".venv")
    python.parent.mkdir(parents=True)
    python.write_text("not started by this test\n", "utf-8")
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    stamp = json.dumps(install.state("dev", tmp_path))
    (tmp_path / ".venv" / "installed.json").write_text(stamp, "utf-8")
    return tmp_path


def test_a_complete_environment_is_left_alone(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second run starts nothing; an environment for tests serves for running too."""
    install.install("dev", clone)
    install.install("run", clone)
    assert capsys.readouterr().out == ""


def test_half_of_an_environment_is_none(clone: Path) -> None:
    """Without its settings its Python would install into the system: it is made anew."""
    for name in ("pyvenv.cfg", "bin"):
        assert install.is_made(clone / ".venv")
        part = clone / ".venv" / name
        lost = part.rename(part.with_name("lost"))
        assert not install.is_made(clone / ".venv")
        lost.rename(part)


def test_a_changed_pin_is_noticed(clone: Path) -> None:
    """Whoever pulls a new lock gets the new packages at the next run; after a crash, too."""
    stamp = clone / ".venv" / "installed.json"
    for name in ("pyproject.toml", *LOCKS.values()):
        kept = (clone / name).read_text("utf-8")
        (clone / name).write_text("changed\n", "utf-8")
        assert install.read_stamp(stamp) != install.state("dev", clone)
        (clone / name).write_text(kept, "utf-8")
    assert install.read_stamp(stamp) == install.state("dev", clone)
    for damage in ("", "{", "[]", "\x00"):
        stamp.write_text(damage, "utf-8")
        assert install.read_stamp(stamp) == {}


def test_a_checkout_without_links_is_explained(tmp_path: Path) -> None:
    """Git writes text files where it cannot make links: one sentence says what to do."""
    (tmp_path / "agent").write_text("../agent", "utf-8")
    with pytest.raises(install.Problem, match=r"no symbolic links\. Clone it with"):
        install.check_links(tmp_path)


@pytest.mark.integration
def test_a_half_made_environment_without_a_network_ends_in_a_sentence(tmp_path: Path) -> None:
    """What an interrupted run left is made anew, in any folder; what cannot be fetched is told."""
    root = tmp_path / "Ordner für Tests"
    (root / "scripts").mkdir(parents=True)
    for name in ("pyproject.toml", *LOCKS.values(), "scripts/install.py"):
        (root / name).write_bytes((ROOT / name).read_bytes())
    for name in install.PARTS:
        (root / "searchloop" / name).mkdir(parents=True)
    python = install.python_of(root / ".venv")
    python.parent.mkdir(parents=True)
    python.symlink_to(tmp_path / "a Python that is gone")
    done = subprocess.run(
        [sys.executable, "scripts/install.py", "run"],
        cwd=root,
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert python.exists()
    *_, last = done.stderr.splitlines()
    assert last.startswith("searchloop: the packages could not be installed")
    assert "Without a network: connect once and run it again." in last
    assert not (root / ".venv" / "installed.json").exists()

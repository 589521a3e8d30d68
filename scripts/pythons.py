"""Run a sample of the tests on every supported Python of this machine, and say which there are.

usage: python scripts/pythons.py

Each Python gets an environment of its own in build/, of the pinned packages; a second run uses it
again. Looked for: PATH, pyenv, and what uv has installed. Nothing is downloaded but packages.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
LOCK = ROOT / "requirements-dev.lock"
# What differs between Pythons and systems: the loop and its threads, files, consoles, wire formats.
SAMPLE = (
    *("tests/agent/test_loop.py", "tests/agent/test_bare_agent.py", "tests/agent/verdicts"),
    *("tests/agent/calls", "tests/agent/settings", "tests/search_backend/test_library.py"),
    *("tests/docs/test_tables.py", "tests/test_plugins.py", "tests/searchloop/render"),
    "tests/search_backend/readers",  # its patterns are read alike
    # These fork, on a terminal of their own.
    *(("tests/cli/test_commands.py", "tests/cli/test_ask.py") if sys.platform == "linux" else ()),
)
ASK = "import sys; print('%d.%d' % sys.version_info[:2])"


def main() -> int:
    """0 when the sample passed on each Python that was found."""
    there = found()
    failed = []
    for version, python in there.items():
        print(f"== Python {version}: {python}", flush=True)
        inside = environment(version, python)
        options = ["-q", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider"]
        command = [str(inside), "-m", "pytest", *options, *SAMPLE]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            failed.append(version)
    missing = [version for version in SUPPORTED if version not in there]
    print(f"== Ran on {', '.join(there)}; failed on {', '.join(failed) or 'none'}; ", end="")
    print(f"not on this machine: {', '.join(missing) or 'none'}")
    return 1 if failed else 0


def found() -> dict[str, str]:
    """The supported Pythons of this machine, by version; each once."""
    there: dict[str, str] = {}
    for python in candidates():
        asked = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=False)
        version = asked.stdout.strip()
        if asked.returncode == 0 and version in SUPPORTED:
            there.setdefault(version, python)
    return {version: there[version] for version in SUPPORTED if version in there}


def candidates() -> Iterator[str]:
    """Programs that may be Pythons: this one first, then PATH, pyenv, uv."""
    yield sys._base_executable  # type: ignore[attr-defined]  # not that of a virtual environment
    for version in SUPPORTED:
        if python := shutil.which(f"python{version}"):
            yield python
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from (str(path) for path in sorted(pyenv.glob("versions/*/bin/python")))
    if uv := shutil.which("uv"):
        command = [uv, "python", "list", "--only-installed", "--output-format", "json"]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        yield from (one["path"] for one in json.loads(told.stdout or "[]"))


def environment(version: str, python: str) -> Path:
    """The interpreter of an environment with the pinned packages, made now if there is none."""
    folder = ROOT / "build" / f"python-{version}"
    inside = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp, digest = folder / "lock", hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if not (stamp.is_file() and stamp.read_text("utf-8") == digest):
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
        wheels = ["--require-hashes", "--only-binary=:all:", "--no-deps", "-r", str(LOCK)]
        quiet = ["-qq", "--disable-pip-version-check"]
        subprocess.run([str(inside), "-m", "pip", "install", *quiet, *wheels], check=True)
        stamp.write_text(digest, "utf-8")
    return inside


if __name__ == "__main__":
    sys.exit(main())

"""Write requirements.lock and requirements-dev.lock: every version pinned, every file hashed.

usage: python3 scripts/lock.py        (needs the network)

One lock serves Python 3.11 and newer on Linux, macOS and Windows: markers say what goes where. Only
packages that come as wheels are considered, so that nobody needs a compiler. The resolver (uv) is
installed into a throwaway environment. No index address is written: pip uses the reader's own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMON = ["--universal", "--only-binary=:all:", "--generate-hashes", "--upgrade", "--quiet"]
PLAIN = ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
HEAD = "# Written by `make lock` from pyproject.toml; do not edit.\n"


def main() -> int:
    """0 when both locks are written."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        bin_folder = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        subprocess.run([bin_folder / "pip", "install", "--quiet", "uv"], check=True)
        uv = str(bin_folder / "uv")
        compile_lock(uv, "requirements.lock", ["--group", "build"])
        same = ["--constraint", "requirements.lock", "--all-extras"]
        compile_lock(uv, "requirements-dev.lock", ["--group", "build", "--group", "dev", *same])
    return 0


def compile_lock(uv: str, name: str, more: list[str]) -> None:
    """One lock file; the development lock holds the same versions as the other, and more."""
    command = [uv, "pip", "compile", "pyproject.toml", *COMMON, *PLAIN, *more, "-o", name]
    subprocess.run(command, cwd=ROOT, check=True)
    path = ROOT / name
    path.write_text(HEAD + path.read_text("utf-8"), "utf-8")


if __name__ == "__main__":
    sys.exit(main())

"""Make .venv and put the pinned packages into it; do nothing when that is done already.

usage: python3 scripts/install.py run|dev

A stamp inside .venv says what was installed: the hashes of the lock file and of pyproject.toml, the
Python, the folder. While it matches nothing is started, so a second run costs one Python start and
needs no network. A run that was interrupted leaves no stamp and is simply done again.

This file must parse on Pythons that are too old, so that they get a sentence, not a SyntaxError:
hence no `from __future__ import annotations` and quoted generics.
"""

import hashlib
import importlib.util
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
PARTS = ("agent", "cli", "search_backend", "web")
LOCKS = {"run": "requirements.lock", "dev": "requirements-dev.lock"}
SHARES = 3  # of the packages, each installed by a pip of its own


class Problem(Exception):
    """Something a person has to do first; the text says what."""


def main() -> int:
    """0 when .venv is ready, 1 after one sentence about what is in the way, 2 for bad usage."""
    if len(sys.argv) != 2 or sys.argv[1] not in LOCKS:
        print("usage: python3 scripts/install.py run|dev", file=sys.stderr)
        return 2
    try:
        check_python(sys.version_info[:3], sys.executable)
        check_links(ROOT / "searchloop")
        install(sys.argv[1], ROOT)
    except Problem as problem:
        print("searchloop: %s" % problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsearchloop: stopped; run it again to finish.", file=sys.stderr)
        return 130
    return 0


def check_python(version: "tuple[int, ...]", name: str) -> None:
    """Raises Problem when `version` is too old."""
    if tuple(version[:2]) < OLDEST:
        raise Problem(
            "Python %d.%d or newer is needed; %s is %s. Install a newer one, or name it: "
            "make run PYTHON=python3.12" % (*OLDEST, name, ".".join(map(str, version)))
        )


def check_links(package: Path) -> None:
    """Raises Problem when the checkout has text files where the links of `package` should be."""
    plain = [name for name in PARTS if not (package / name).is_dir()]
    if plain:
        raise Problem(
            "%s should be a link to the folder %s, but this checkout has no symbolic links. Clone "
            "it with 'git clone -c core.symlinks=true' onto a file system that has them (on "
            "Windows switch on the developer mode first), or install it: pipx install '%s'"
            % (package / plain[0], plain[0], package.parent)
        )


def install(what: str, root: Path) -> None:
    """Bring `root`/.venv up to date for `what` ('run' or 'dev'). Raises Problem."""
    venv = root / ".venv"
    wanted = state(what, root)
    have = read_stamp(venv / "installed.json")
    made = is_made(venv)
    if made and all(have.get(key) == value for key, value in wanted.items()):
        return
    started = time.monotonic()
    if not made or any(have.get(key) != wanted[key] for key in ("python", "folder")):
        make_venv(venv)
    fill_venv(venv, root / LOCKS[what], root)
    (venv / "installed.json").write_text(json.dumps(wanted, indent=1) + "\n", "utf-8")
    say("ready after %.0f s." % (time.monotonic() - started))


def is_made(venv: Path) -> bool:
    """False for half of an environment: without pyvenv.cfg its Python is that of the system."""
    return python_of(venv).exists() and (venv / "pyvenv.cfg").exists()


def state(what: str, root: Path) -> "dict[str, str]":
    """What the stamp has to say; a venv for 'dev' is one for 'run' too."""
    files = ["pyproject.toml", LOCKS["run"], LOCKS["dev"]]
    found = {
        name: hashlib.sha256((root / name).read_bytes()).hexdigest()
        for name in (files if what == "dev" else files[:2])
    }
    return {"python": "%d.%d" % sys.version_info[:2], "folder": str(root), **found}


def read_stamp(path: Path) -> "dict[str, str]":
    """The stamp, or nothing when it is missing or damaged."""
    try:
        stamp = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def make_venv(venv: Path) -> None:
    """A new, empty .venv with pip."""
    if importlib.util.find_spec("ensurepip") is None:
        raise Problem(
            "this Python cannot make virtual environments (it has no ensurepip). On Debian or "
            "Ubuntu: apt-get install python3-venv - then run make again."
        )
    say("making .venv with Python %d.%d" % sys.version_info[:2])
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=False)
    if made.returncode:
        raise Problem(
            "%s could not be made; the reason is above. Make the folder writable and free 200 MB, "
            "or clone into a folder that has both." % venv
        )


def fill_venv(venv: Path, lock: Path, root: Path) -> None:
    """The packages of `lock` and the project itself, which stays editable in `root`.

    Wheels only and hashes checked: nothing is built, and nothing else than what was locked can
    come. The lock is complete, so pip has nothing to resolve, and several can share the work: one
    fetches, unpacks and compiles on one core.
    """
    parts = shares(lock.read_text("utf-8"), SHARES)
    count = sum(len(part) for part in parts)
    say("installing %d packages from %s; the first time this takes a minute" % (count, lock.name))
    wheels = []
    for n, part in enumerate(parts):
        share = venv / ("share-%d.txt" % n)
        share.write_text("".join(part), "utf-8")
        wheels.append(["--require-hashes", "--only-binary=:all:", "-r", str(share)])
    project = ["--no-build-isolation", "--editable", str(root)]
    for whats, many in ((wheels, count), ([project], 1)):
        if pip(venv, [["install", "--no-deps", "--progress-bar=off", *w] for w in whats], many):
            raise Problem(
                "the packages could not be installed; pip's reason is above. Without a network: "
                "connect once and run it again. On a full disk: free 200 MB and run it again. No "
                "wheel for this Python (%d.%d): use 3.11 to 3.14, for example make run "
                "PYTHON=python3.13" % sys.version_info[:2]
            )


def shares(lock: str, count: int) -> "list[list[str]]":
    """The packages of a lock, each with its hashes, in at most so many parts of one length."""
    packages = re.findall(r"^\w.*\n(?: +--hash.*\n)+", lock, re.MULTILINE)
    return [packages[n::count] for n in range(min(count, len(packages)))]


def pip(venv: Path, commands: "list[list[str]]", count: int) -> bool:
    """Run these commands of the venv's pip at once; True if one failed. Show how far they are."""
    settings = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_USER": "0"}
    started = [
        subprocess.Popen(
            [str(python_of(venv)), "-m", "pip", *arguments],
            env={**os.environ, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
            errors="replace",
        )
        for arguments in commands
    ]
    said = [[] for _ in started]  # type: list[list[str]]
    others = set(show_progress(lines_of(started, said), count))
    codes = [process.wait() for process in started]
    for code, lines in zip(codes, said):  # noqa: B905 - `strict` is newer than some Pythons
        if code:
            reason = [line.rstrip() for line in lines if line.rstrip() in others]
            print("\n".join(reason[-20:]), file=sys.stderr)
    return any(codes)


def lines_of(started: "list[subprocess.Popen[str]]", said: "list[list[str]]") -> "Iterator[str]":
    """The lines of several processes as they come, until all have ended; each adds to its list."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read(process: "subprocess.Popen[str]", own: "list[str]") -> None:
        for line in process.stdout or ():
            own.append(line)
            lines.put(line)
        lines.put(None)

    for each in zip(started, said):  # noqa: B905 - `strict` is newer than some Pythons
        threading.Thread(target=read, args=each, daemon=True).start()
    for _ in started:
        yield from iter(lines.get, None)


def show_progress(lines: "Iterable[str]", count: int, live: "bool | None" = None) -> "list[str]":
    """One line that changes on a terminal, else a line for every tenth package.

    The lines of pip that say something else are returned: a reason is among them.
    """
    live = sys.stdout.isatty() if live is None else live
    seen, others, told = 0, [], ""
    for line in lines:
        first, _, rest = line.strip().partition(" ")
        if first == "Collecting":
            seen += 1
            told = "%d of %d: %s" % (min(seen, count), count, rest.partition("=")[0].split(" ")[0])
        elif line.startswith("Installing collected"):
            told = "unpacking packages"
        elif not line.startswith((" ", "Downloading", "Using cached", "Looking")):
            others.append(line.rstrip())
            continue
        else:
            continue
        if live:
            print("\r\033[Ksearchloop: " + told, end="", flush=True)
        elif seen % 10 == 0 or first != "Collecting":
            say(told)
    if live and told:
        print("\r\033[K", end="", flush=True)
    return others


def python_of(venv: Path) -> Path:
    """The interpreter inside `venv`; a dangling link does not exist."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def say(text: str) -> None:
    """One line of progress."""
    print("searchloop: " + text, flush=True)


if __name__ == "__main__":
    sys.exit(main())

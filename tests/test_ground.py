"""What a fresh clone stands on: pins, the install script, the wheel, the list of settings."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import socket
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from searchloop.compose import every_setting
from tests.conftest import FOREIGN, NetworkRefused
from tests.recorded import VARIABLE
from tests.source_tree import FOLDERS, PACKAGES, ROOT, modules, report, strings

LOCKS = ("requirements.lock", "requirements-dev.lock")
# Names that look like settings of ours and belong to the operating system or to others.
NOT_OURS = {"LOCALAPPDATA", "NO_COLOR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"}
IMPORT_NAMES = {"psycopg_pool", "dotenv", "markdown_it", "opentelemetry", "werkzeug", "yarl"}
IMPORT_NAMES |= {"Stemmer", "typing_extensions"}  # the latter only where types are checked
ENV_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
ENV_PREFIX = re.compile(
    r"SEARCH|OPENAI_|GEMINI_|GOOGLE_|ANTHROPIC_|OLLAMA_|BRAVE_|TAVILY_|SEARXNG_|PERPLEXITY_|EXA_"
    r"|SERPER_|JINA_|FIRECRAWL_|XDG_"
)


INNER = """
import contextlib, socket
from tests.conftest import skip_without

def test_skips():
    skip_without("Chromium")

def test_swallows():
    with socket.socket() as client, contextlib.suppress(Exception):
        client.connect(("192.0.2.1", 80))

def test_looks_up():
    with contextlib.suppress(Exception):
        socket.getaddrinfo("example.org", 80)
"""


def pins(name: str) -> dict[str, str]:
    """Project name -> version, of a lock file."""
    text = (ROOT / name).read_text("utf-8")
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", text, re.M))


def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_is_pinned_and_hashed(name: str) -> None:
    """A lock holds exact versions with SHA-256 hashes, and no address to fetch them from."""
    text = (ROOT / name).read_text("utf-8")
    entries = re.sub(r" \\\n\s*", " ", text).splitlines()
    bad = [e for e in entries if e and not e.startswith("#") and not re.match(LOCKED, e)]
    report(bad, f"{name} has lines that are not name==version --hash=sha256:...")
    assert "://" not in text


LOCKED = re.compile(r"[a-z0-9-]+==[^\s;]+(?: ; .+?)?(?: --hash=sha256:[0-9a-f]{64})+$")


def test_locks_fit_the_project_file() -> None:
    """Every direct dependency is locked at a version that pyproject.toml allows."""
    table = project()
    wanted = {LOCKS[0]: [*table["project"]["dependencies"], *table["build-system"]["requires"]]}
    groups = table["dependency-groups"]
    wanted[LOCKS[1]] = [*wanted[LOCKS[0]], *groups["build"], *groups["dev"]]
    problems = []
    for name, requirements in wanted.items():
        locked = pins(name)
        for requirement in map(Requirement, requirements):
            version = locked.get(requirement.name)
            if version is None or not requirement.specifier.contains(version):
                problems.append(f"{name}: {requirement.name} is locked as {version}")
    report(problems, "Run `make lock`:")


def test_the_development_lock_holds_the_same_versions_and_more() -> None:
    """Tests run on what users run."""
    runtime, development = (pins(name) for name in LOCKS)
    assert runtime.items() <= development.items()


def test_every_dependency_has_its_reason_written_down() -> None:
    """docs/about/decisions.md names each direct dependency, also the optional ones."""
    text = (ROOT / "docs" / "about" / "decisions.md").read_text("utf-8")
    table = project()["project"]
    extras = [r for group in table["optional-dependencies"].values() for r in group]
    names = {Requirement(r).name for r in [*table["dependencies"], *extras]}
    report([n for n in names if f"`{n}`" not in text], "Not in docs/about/decisions.md:")


def test_every_third_party_import_is_a_declared_dependency() -> None:
    """Nothing is used only because something else happens to bring it along."""
    table = project()["project"]
    extras = [r for group in table["optional-dependencies"].values() for r in group]
    known = {Requirement(r).name.replace("-", "_") for r in [*table["dependencies"], *extras]}
    known |= IMPORT_NAMES | set(PACKAGES) | set(sys.stdlib_module_names)
    problems = [
        f"{module.at(line.line)} imports {line.target}"
        for module in modules()
        for line in module.imports
        if line.target.partition(".")[0] not in known
    ]
    report(problems, "Imported but not declared in pyproject.toml:")


def test_a_checkout_is_the_package_that_a_wheel_installs() -> None:
    """Links make one package of the four folders; nothing beside it can be imported through it."""
    for name in FOLDERS:
        assert (ROOT / "searchloop" / name).readlink() == Path("..", name)
        assert find_spec(f"searchloop.{name}") is not None
        with pytest.raises(ImportError, match=f"import searchloop.{name}"):
            importlib.import_module(name)
    for other in ("tests", "bench", "scripts", "docs"):
        assert find_spec(f"searchloop.{other}") is None


def test_the_example_file_lists_exactly_the_settings_that_are_read() -> None:
    """.env.example is the whole list of settings; a setting's other names stand in its comment."""
    text = (ROOT / ".env.example").read_text("utf-8")
    listed = re.findall(r"^(?:# ?)?([A-Z][A-Z0-9_]+)=", text, re.M)
    declared, _ = declared_settings()
    report([n for n in listed if listed.count(n) > 1], ".env.example lists twice:")
    declared = {name for name in declared if not name.endswith("_BASE_URL")}  # one rule says them
    assert "NAME_BASE_URL" in listed
    # A key comes with each vendor; what else can be set stays a short list.
    assert len([name for name in listed if not name.endswith("_API_KEY")]) <= 38
    for name in ("OPENAI", "BRAVE", "JINA_READER", "FIRECRAWL"):
        assert name in re.findall(r"NAME_BASE_URL=.*?(?=\n\n)", text, re.S)[0]
    report(declared - set(listed), "Read by the code, missing in .env.example:")
    report(
        set(listed) - declared - {"NAME_BASE_URL"},
        "In .env.example, but no SETTINGS or needs declares it:",
    )


def test_every_setting_in_the_source_is_declared() -> None:
    """Nothing is read under a name that the list of settings does not have."""
    declared, aliases = declared_settings()
    problems = [
        f"{module.at(constant.lineno)} names {name}"
        for module in modules()
        for constant in strings(module)
        if ENV_NAME.fullmatch(name := str(constant.value)) and ENV_PREFIX.match(name)
        if name not in declared | aliases | NOT_OURS
    ]
    report(problems, "Settings that no SETTINGS tuple and no engine's needs declares:")


def declared_settings() -> tuple[set[str], set[str]]:
    """Names and other names of all settings: SETTINGS of any module, settings of engines."""
    names: set[str] = set()
    aliases: set[str] = set()
    for package in ("searchloop.agent", "searchloop.search_backend"):
        loaded = importlib.import_module(package)
        for found in pkgutil.walk_packages(loaded.__path__, package + "."):
            module = importlib.import_module(found.name)
            engine = getattr(module, "ENGINE", None)
            for setting in (*getattr(module, "SETTINGS", ()), *getattr(engine, "settings", ())):
                names.add(setting[0] if isinstance(setting, tuple) else setting.name)
                aliases.update(getattr(setting, "aliases", ()))
            names.update(getattr(engine, "needs", ()))
    return names, aliases


@pytest.mark.parametrize(
    ("ci", "outcome"),
    [("", "2 passed, 1 skipped, 2 errors"), ("true", "1 failed, 2 passed, 2 errors")],
)
def test_ci_forbids_skips_and_the_guard_sees_swallowed_attempts(
    tmp_path: Path, ci: str, outcome: str
) -> None:
    """Outside CI a missing browser is a skip, in CI a failure; leaving the machine always fails."""
    (tmp_path / "test_inner.py").write_text(INNER, "utf-8")
    command = [
        sys.executable,
        *("-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"),
    ]
    command += ["--rootdir", str(tmp_path), "-c", os.devnull, str(tmp_path)]
    env = {**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200
    )
    assert outcome in done.stdout, done.stdout + done.stderr
    told = "Left out: 1 without Chromium. To run these tests as well:\n"
    assert (f"{told}  sudo apt-get install chromium\n" in done.stdout) == (not ci)


def test_no_test_sees_the_settings_of_the_machines_owner() -> None:
    """Every setting of ours, keys, proxies and servers are gone from the environment, and only
    they."""
    example = (ROOT / ".env.example").read_text("utf-8")
    ours = re.findall(r"^#? ?([A-Z][A-Z0-9_]+)=", example, re.MULTILINE)
    ours += [setting.name for setting in every_setting()]
    assert len(ours) > 50
    assert [n for n in (*ours, "http_proxy", "PGHOST") if not FOREIGN.fullmatch(n)] == []
    needed = ("PATH", "HOME", "CI", "TMPDIR", "LANG", "TZ", "PYTEST_XDIST_WORKER")
    assert not any(FOREIGN.fullmatch(name) for name in needed)
    assert not any(FOREIGN.fullmatch(name) for name in os.environ if name != VARIABLE)


@pytest.mark.parametrize(
    ("module", "welcome"),
    [
        ("searchloop.search_backend.fetch.fetch", True),
        ("searchloop.search_backend.engines.parrot", False),
    ],
)
def test_the_search_backend_leaves_by_its_two_doors(
    network_attempts: list[str], module: str, welcome: bool
) -> None:
    """Code of any other module cannot connect anywhere, not even through a library."""
    code = """
import socket

def reach(address):
    with socket.create_connection(address, 5):
        return True
"""
    scope: dict[str, Any] = {"__name__": module}
    exec(compile(code, module, "exec"), scope)
    with socket.create_server(("127.0.0.1", 0)) as server:
        if welcome:
            assert scope["reach"](server.getsockname())
            return
        with pytest.raises(NetworkRefused, match=module):
            scope["reach"](server.getsockname())
    assert network_attempts
    network_attempts.clear()

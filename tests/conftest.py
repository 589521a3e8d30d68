"""What every test stands on: no network, no silent skips in CI, Chromium, recordings.

The network guard is an audit hook: it sees each connection and each name look-up of this process
below all libraries, patches nothing, and cannot be uninstalled by a test. A refused attempt raises
where it happens and fails the test even when the code under test swallows the exception. The search
backend is held to its two doors as well: whatever it reaches, this machine included, has to be
reached by the guarded fetch or by the door of the engines.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import inspect
import ipaddress
import os
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings

from tests import recorded
from tests.postgres import Postgres, programs

SHELL = "chromium-headless-shell"  # Chromium without its window: the same pages for less work
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC_BROWSERS = (
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
)

settings.register_profile("quick", deadline=None, max_examples=50)
settings.register_profile(
    "torture", deadline=None, max_examples=5_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("quick")


# Thousands of stores are made and synced: in memory that costs nothing, and a killed process finds
# the same there. Small file systems, and those that run no programs, are of no use.
MEMORY = Path("/dev/shm")
_ROOM = 4 << 30
_MMAP_THRESHOLD = -3  # of malloc.h

# Programs that some tests need, and the Debian packages that bring them.
DEBIAN_PACKAGES = {
    "Chromium": "chromium",
    "Firefox": "firefox-esr",
    "PostgreSQL": "postgresql",
    "nginx": "nginx-light",
    "npm": "nodejs npm",
}
NOT_INSTALLED = re.compile(rf"\b({'|'.join(DEBIAN_PACKAGES)}) is not installed")

# The only modules of the search backend from which a connection or a look-up may come.
BACKEND_DOORS = frozenset(
    f"searchloop.search_backend.fetch.{name}" for name in ("fetch", "engine_client", "proxy")
)


class NetworkRefused(Exception):
    """A test tried to reach something that is not this machine."""


_attempts: list[str] = []
_OUTGOING = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"})


# What a developer or a build machine may have set, and no test may see: our settings and keys,
# proxies, where PostgreSQL is, whose certificates count, which language is spoken.
FOREIGN = re.compile(
    r"(SEARCH|SEARX|OTEL_|OLLAMA_|GEMINI_|GOOGLE_|CRAWL4AI_|ZIM_|PG[A-Z]|NODE_|npm_config_).*"
    r"|.*_(API_KEY|BASE_URL|TOKEN)|[a-z]+_proxy|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE"
    r"|LANGUAGE|LC_ALL",
    re.IGNORECASE,
)


linux_only = pytest.mark.skipif(
    not Path("/proc").is_dir(), reason="what the system knows of a process is read from /proc"
)


def skip_without(program: str) -> NoReturn:
    """Skips a test for want of a program of DEBIAN_PACKAGES; the summary says what installs it."""
    pytest.skip(f"{program} is not installed: apt-get install {DEBIAN_PACKAGES[program]}")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: tests wait, but each first reads all of them."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function, on a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**given))
    return True


def pytest_configure(config: pytest.Config) -> None:
    """Remove this machine's own settings from the environment, and choose where folders are made.

    What stays is the address of Ollama when it is asked, and the larger set of recordings. Ctrl-C
    stops the tests also where a shell started them in the background. Temporary folders are made in
    memory, unless somebody has chosen another place.
    """
    for name in filter(FOREIGN.fullmatch, list(os.environ)):
        real = config.option.markexpr == "ollama" and name.startswith("OLLAMA_")
        if not real and name != recorded.VARIABLE:
            del os.environ[name]
    folder = os.environ.get(recorded.VARIABLE)
    if folder and not Path(folder).is_dir():
        raise pytest.UsageError(f"{recorded.VARIABLE}={folder} names no folder of recordings.")
    os.environ["LC_MESSAGES"] = "C"  # English, wherever the tests run
    if (allocator := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        allocator(_MMAP_THRESHOLD, 1 << 22)  # a large body goes back to the system when it is freed
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(os, "statvfs") or not os.access(MEMORY, os.W_OK):
        return
    found = os.statvfs(MEMORY)
    if found.f_bavail * found.f_frsize >= _ROOM and not found.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


_INTEGRATION = re.compile(r"\b(integration|store|FEW)\b")  # the mark, and what carries it


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m "integration and ..."` reads no file that cannot hold such a test: reading all of them
    would take three times as long.
    """
    wanted = config.option.markexpr.startswith("integration and")
    if not wanted or not re.fullmatch(r"test_.*\.py", collection_path.name):
        return None
    return not _INTEGRATION.search(collection_path.read_text("utf-8")) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of the integration is in a file that `-m "integration and ..."` reads."""
    files = {item.path for item in items if item.get_closest_marker("integration")}
    if lost := [path for path in files if not _INTEGRATION.search(path.read_text("utf-8"))]:
        names = ", ".join(map(str, sorted(lost)))
        raise pytest.UsageError(f"Add to _INTEGRATION in tests/conftest.py how {names} is marked.")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: nobody looks for garbage in it, now or later. After that
    garbage is looked for as seldom as in the program itself (`cli.main`).
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        gc.enable()


def _is_local(host: object) -> bool:
    """Whether a connection to `host`, or a look-up of it, stays on this machine."""
    if host is None or host in ("", b"", "localhost", b"localhost"):
        return True
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _is_literal(host: object) -> bool:
    """Whether looking `host` up is mere parsing."""
    try:
        ipaddress.ip_address(str(host).partition("%")[0])
    except ValueError:
        return False
    return True


def _round_the_doors() -> str | None:
    """The module of the search backend that is at it, if it is none of the doors."""
    frame = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        # Where the system has no pairs of sockets, one is made by a connection.
        if name == "socket" and "socketpair" in frame.f_code.co_name:
            return None
        if name.startswith("searchloop.search_backend."):
            return None if name in BACKEND_DOORS else name
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _guard(event: str, args: tuple[Any, ...]) -> None:
    if not event.startswith("socket."):
        return
    if event in _OUTGOING and (module := _round_the_doors()):
        attempt = f"{event} by {module}, round the doors"
        _attempts.append(attempt)
        raise NetworkRefused(
            f"{attempt}: pages leave by fetch or its proxy, engines by fetch.engine_client"
        )
    if event in ("socket.connect", "socket.sendto"):
        address = args[1]
        if not isinstance(address, tuple) or _is_local(address[0]):
            return
        attempt = f"{event} to {address[0]}:{address[1]}"
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        if _is_local(args[0]) or _is_literal(args[0]):
            return
        attempt = f"look-up of {args[0]!r}"
    else:
        return
    _attempts.append(attempt)
    raise NetworkRefused(
        f"{attempt}: tests use fake servers on 127.0.0.1 and no names but localhost"
    )


sys.addaudithook(_guard)


@pytest.fixture(autouse=True)
def no_network() -> Generator[None]:
    """Fails the test during which anything tried to leave this machine."""
    _attempts.clear()
    yield
    if _attempts:
        attempts = ", ".join(_attempts)
        _attempts.clear()
        pytest.fail(f"the network was used: {attempts}", pytrace=False)


@pytest.fixture
def network_attempts() -> list[str]:
    """Attempts refused so far; a test about the guard itself clears them."""
    return _attempts


@pytest.fixture(scope="session")
def chromium() -> str:
    """The system's browser, as a user has it; nothing is ever downloaded."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    found = found or next((str(path) for path in MAC_BROWSERS if path.exists()), None)
    if found is None:
        skip_without("Chromium")
    return found


@pytest.fixture(scope="session")
def headless(request: pytest.FixtureRequest) -> str:
    """What shows our page, for Playwright's `executable_path`."""
    found: str = shutil.which(SHELL) or request.getfixturevalue("chromium")
    return found


@pytest.fixture(scope="session")
def postgres() -> Generator[Postgres]:
    """A PostgreSQL server of this run's own."""
    if programs() is None:
        skip_without("PostgreSQL")
    with Postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """An empty store of each kind, as `EventLog` takes it."""
    if request.param == "sqlite":
        return tmp_path / "sessions.sqlite3"
    server: Postgres = request.getfixturevalue("postgres")
    return server.url()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Generator[None]:
    """The last lines name the programs that are missing and the command that installs them."""
    yield
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [r.longrepr[2] for r in skipped if isinstance(r.longrepr, tuple)]
    told = Counter(m[1] for reason in reasons if (m := NOT_INSTALLED.search(reason)))
    if told:
        tests = ", ".join(f"{count} without {name}" for name, count in sorted(told.items()))
        terminalreporter.write_line(f"Left out: {tests}. To run these tests as well:")
        packages = " ".join(DEBIAN_PACKAGES[name] for name in sorted(told))
        terminalreporter.write_line(f"  sudo apt-get install {packages}")


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not os.environ.get("CI") or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid}: in CI nothing may be skipped ({reason})"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test is a failed one."""
    report = yield
    _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In CI a skipped module is a failed one."""
    report = yield
    _forbid_skip(report)
    return report

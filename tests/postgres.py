"""A real PostgreSQL server of the suite's own, on a free port of 127.0.0.1, gone when it is over.

`url` gives each caller an empty store. The server writes without waiting for the disk: what is
tested is that our processes may die, not that PostgreSQL may.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.ports import free_port
from tests.waiting import until

_PLACES = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt")


def programs() -> Path | None:
    """The folder that holds `initdb` and `postgres`, the newest version of them."""
    found = [path for place in _PLACES for path in Path(place).glob("*/bin/initdb")]
    if found:
        return max(found).parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def _user() -> str | None:
    """PostgreSQL refuses to run as the superuser: somebody else, then."""
    if os.geteuid() != 0:
        return None
    import pwd  # Windows, where a sample of the tests runs, has none

    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


class Postgres:
    """Use with `with`."""

    def __init__(self, *, careful: bool = False) -> None:
        """With `careful` it waits for the disk as a user's server does: for measuring."""
        self._bin = programs()
        self._numbers = itertools.count(1)
        self._folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self._user = _user()
        self._careful = careful
        self._server: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    def __enter__(self) -> Postgres:
        assert self._bin is not None
        if self._user:
            shutil.chown(self._folder, self._user)
        own = ("-U", "tests", "-A", "trust", "-E", "UTF8", "--locale=C")
        self._run("initdb", "-D", "data", *own)
        self.start()
        return self

    def start(self) -> None:
        """Starts the server, after a stop too, and waits until it answers."""
        assert self._bin is not None
        speed = () if self._careful else ("-c", "fsync=off", "-c", "full_page_writes=off")
        self._server = subprocess.Popen(
            [
                *(str(self._bin / "postgres"), "-D", "data", "-p", str(self.port), *speed),
                *("-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={'.'}"),
                *("-c", "max_connections=200"),
            ],
            cwd=self._folder,
            user=self._user,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: self._run("pg_isready", "-q", "-h", "127.0.0.1", check=False) == 0)

    def stop(self) -> None:
        """Stops the server at once, as a crash would: it recovers at the next start."""
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait()
            self._server = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """In here no process of the server does anything, and its machine answers for it."""
        assert self._server is not None
        parent = self._server.pid
        stopped = [parent]
        os.kill(parent, signal.SIGSTOP)  # from now on it makes no more of them
        try:
            told = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, check=True)
            pairs = [tuple(map(int, line.split())) for line in told.stdout.splitlines()]
            for pid in (pid for pid, above in pairs if above == parent):
                with suppress(ProcessLookupError):  # it was about to end
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
            yield
        finally:
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def tell(self, *statements: str) -> list[Any]:
        """What the last of these statements gives, said by whoever administers the server."""
        import psycopg

        options = "-c default_transaction_read_only=off"
        with psycopg.connect(self.address, autocommit=True, options=options) as db:
            for statement in statements:
                done = db.execute(statement.encode())
            return done.fetchall() if done.description else []

    @property
    def address(self) -> str:
        """Where it is; `url` is what stores are given."""
        return f"postgresql://tests@127.0.0.1:{self.port}/postgres"

    def url(self) -> str:
        """The address of an empty store: a schema of its own, which costs a hundredth of what a
        database does, and holds everything that a store makes."""
        name = f"t{next(self._numbers)}"
        self.tell(f"CREATE SCHEMA {name}")
        return f"{self.address}?options=-csearch_path%3D{name}"

    def _run(self, program: str, *words: str, check: bool = True) -> int:
        assert self._bin is not None
        done = subprocess.run(
            [str(self._bin / program), *words],
            cwd=self._folder,
            user=self._user,
            env={**os.environ, "PGPORT": str(self.port)},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stderr.decode()
        return done.returncode

    def __exit__(self, *rest: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

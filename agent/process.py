"""What this process takes of its machine, and may take, as far as the system tells."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping

_STARTED = time.time()
_FILES = 65_536


def memory() -> float | None:
    """Resident memory in bytes; None where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return float(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError, IndexError):
        return None


def files() -> float | None:
    """Open files and connections."""
    try:
        return float(len(os.listdir("/proc/self/fd")))
    except OSError:
        return None


def be_a_server() -> None:
    """Makes room for many readers: each is an open file and some objects that live long."""
    _more_files()
    _rest_seldom()


def _more_files() -> None:
    """Usual systems start a program with room for 1,024 and let it ask for more."""
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ImportError, OSError, ValueError):  # Windows; or a system that says no after all
        pass


def _rest_seldom() -> None:
    """Looks for cycles less often than a script does, and not at what was there at the start.

    A server with a thousand readers holds some hundred thousand objects that live long; to go over
    them again and again costs time, and pauses that readers can see.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


GAUGES: Mapping[str, tuple[str, Callable[[], float | None]]] = {
    "process_memory_bytes": ("Resident memory.", memory),
    "process_open_files": ("Open files and connections.", files),
    "process_cpu_seconds_total": ("CPU time used.", time.process_time),
    "process_start_time_seconds": ("When it started, in epoch seconds.", lambda: _STARTED),
}

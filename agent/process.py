"""What this process takes of its machine, as far as the system tells."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

_STARTED = time.time()


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


GAUGES: Mapping[str, tuple[str, Callable[[], float | None]]] = {
    "process_memory_bytes": ("Resident memory.", memory),
    "process_open_files": ("Open files and connections.", files),
    "process_cpu_seconds_total": ("CPU time used.", time.process_time),
    "process_start_time_seconds": ("When it started, in epoch seconds.", lambda: _STARTED),
}

"""`open_page` put together: the guarded fetch, the readers, the library and the shelves."""

from __future__ import annotations

from functools import partial
from typing import Any

from search_backend.disk_cache import Disk
from search_backend.engines import Access, find_shelves
from search_backend.fetch import fetch as guarded_fetch
from search_backend.fetch import system_resolver
from search_backend.library import Library
from search_backend.page_cache import PageCache
from search_backend.pages import Pages
from search_backend.readers import LOCAL, find_services
from search_backend.reading import Fetch, Reading
from search_backend.service_calls import ServiceCalls
from search_backend.settings import Settings
from search_backend.verdict import vet


def make_pages(
    settings: Settings, library: Library, fetch: Fetch | None = None, disk: Disk | None = None
) -> Pages:
    """How pages are opened under these settings; `fetch` stands in for the guarded one, and pages
    are kept on `disk` as well if given."""
    ranges = settings.allow_ranges
    reading = Reading(
        fetch or partial(guarded_fetch, allow_ranges=ranges),
        partial(vet, resolve=system_resolver, allow_ranges=ranges),
        find_services(),
        ServiceCalls(settings.keys).read,
        settings.readers,
        settings.page_seconds,
    )
    shelves = find_shelves(Access(settings.keys, library))
    return Pages(
        reading,
        library,
        shelves=shelves,
        rules=settings.rules,
        offline=settings.offline,
        cache=PageCache(disk=disk),
    )


def describe_readers(settings: Settings) -> list[dict[str, Any]]:
    """Every reader, what it lacks, and its place in the order; None for one that is not chosen."""
    order = settings.readers
    rows: list[dict[str, Any]] = [
        {"name": LOCAL, "title": "Read here", "remote": False, "needs": [], "missing": []}
    ]
    for service in find_services().values():
        missing = service.missing(settings.keys)
        shape = {"name": service.name, "title": service.title, "remote": True}
        rows.append({**shape, "needs": list(service.needs), "missing": list(missing)})
    for row in rows:
        name = row["name"]
        row["available"] = not row["missing"] and not (row["remote"] and settings.offline)
        row["position"] = order.index(name) + 1 if name in order else None
    return rows

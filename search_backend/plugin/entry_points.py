"""Engines and readers that other installed packages bring, by entry points.

    [project.entry-points."searchloop.engines"]
    heron = "heron_search:ENGINE"

A plugin is loaded once, when its kind is first needed. One that cannot be loaded, is of another
kind, or has the name of another part is left out and keeps its reason; nothing else stops.
agent/settings/plugins.py does the same for providers and tools.

Spec: https://packaging.python.org/en/latest/specifications/entry-points/
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any


@dataclass(frozen=True, slots=True)
class PluginPart:
    """One entry point: its name, its package with the version, what it has brought, or why not."""

    name: str
    package: str
    value: Any = None
    problem: str = ""


@cache
def find_plugins(
    group: str, kinds: tuple[type, ...], names: tuple[str, ...], taken: Container[str] = ()
) -> tuple[PluginPart, ...]:
    """Returns the plugins of `searchloop.GROUP`: objects of one of these kinds, or modules that
    hold one under one of `names`. Those with a name that is `taken` are problems."""
    seen: set[str] = set()
    found = []
    for point in sorted(entry_points(group=f"searchloop.{group}"), key=lambda p: p.name):
        part = _loaded(point, kinds, names)
        own = str(getattr(part.value, "name", point.name))
        if part.value is not None and (own in taken or own in seen):
            part = PluginPart(part.name, part.package, None, f"There is another part named {own}.")
        seen.add(own)
        found.append(part)
    return tuple(found)


def _loaded(point: EntryPoint, kinds: tuple[type, ...], names: tuple[str, ...]) -> PluginPart:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "?"
    try:
        value = point.load()
    except (Exception, SystemExit) as error:  # whatever a stranger's module does when imported
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return PluginPart(point.name, package, None, f"It could not be loaded: {why}")
    held = (value, *(getattr(value, name, None) for name in names))
    part = next((one for one in held if isinstance(one, kinds)), None)
    if part is None:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        return PluginPart(point.name, package, None, f"{point.value} is no {wanted}.")
    return PluginPart(point.name, package, part)

"""Engines and readers: ours, one in a module, and those of other packages, by entry points.

    [project.entry-points."searchloop.engines"]
    heron = "heron_search:ENGINE"

One that is of another kind, or has the name of another part, is left out and keeps its reason.

Spec: https://packaging.python.org/en/latest/specifications/entry-points/
"""

from __future__ import annotations

import pkgutil
from collections.abc import Container
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from searchloop.analysis.plugins import Plugin, find_plugins

Part = TypeVar("Part")


def own_parts(package: str, name: str, kind: type[Part]) -> list[Part]:
    """Returns the objects of this kind that the modules of a package of ours hold under `name`,
    sorted by module; a module whose name begins with _ is no part."""
    modules = pkgutil.iter_modules(import_module(package).__path__)
    names = sorted(module.name for module in modules if module.name[0] != "_")
    found = (getattr(import_module(f"{package}.{each}"), name, None) for each in names)
    return [one for one in found if isinstance(one, kind)]


@cache
def find_parts(
    group: str, kinds: tuple[type, ...], names: tuple[str, ...], taken: Container[str] = ()
) -> tuple[Plugin, ...]:
    """Returns the plugins of `searchloop.GROUP`: objects of one of these kinds, or modules that
    hold one under one of `names`. Those with a name that is `taken` are problems."""
    seen = set[str]()

    def part_of(value: Any) -> Any:
        held = (value, *(getattr(value, name, None) for name in names))
        return next((one for one in held if isinstance(one, kinds)), None)

    def check(point: str, value: Any) -> str:
        part = part_of(value)
        if part is None:
            return f"It is no {' or '.join(kind.__name__ for kind in kinds)}."
        name = getattr(part, "name", point)  # a reader has none of its own
        if name in taken or name in seen:
            return f"There is another part named {name}."
        seen.add(name)
        return ""

    return tuple(p._replace(value=part_of(p.value)) for p in find_plugins(group, check))

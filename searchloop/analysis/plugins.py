"""Parts that other installed packages bring, by entry points.

    [project.entry-points."searchloop.providers"]
    parrot = "parrot_models"

A plugin is loaded once, when its kind is first needed. One that cannot be loaded, or that `check`
refuses, is left out and keeps its reason; nothing else stops.

Spec: https://packaging.python.org/en/latest/specifications/entry-points/
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Plugin(NamedTuple):
    """One entry point: its name, its package with the version, what it has brought, or why not."""

    name: str
    package: str
    value: Any = None
    problem: str = ""

    def notice(self) -> dict[str, str]:
        """Returns {code, message, remedy} for a plugin that is left out."""
        what = f"The plugin {self.name} of {self.package} is not used. {self.problem}"
        remedy = f"Update or uninstall {self.package.partition(' ')[0]}."
        return {"code": "broken_plugin", "message": what, "remedy": remedy}


def find_plugins(group: str, check: Callable[[str, Any], str]) -> tuple[Plugin, ...]:
    """Returns the plugins of `searchloop.GROUP`, by name; `check` gets the name and the object, and
    returns why it cannot be used, or nothing."""
    from importlib.metadata import entry_points  # a slow import, and few runs need it

    points = sorted(entry_points(group=f"searchloop.{group}"), key=lambda point: point.name)
    return tuple(_loaded(point, check) for point in points)


def _loaded(point: EntryPoint, check: Callable[[str, Any], str]) -> Plugin:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "?"
    try:
        value = point.load()
        problem = check(point.name, value)
    except (Exception, SystemExit) as error:  # whatever a stranger's module does when imported
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        value, problem = None, f"It could not be loaded: {why}"
    return Plugin(point.name, package, None if problem else value, problem)

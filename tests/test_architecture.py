"""The shape of the house: who may import whom, and who may touch the outside.

Each rule is read off the source, so that a new file is held to it without being listed anywhere.
An exception needs an entry in one of the tables below, with its reason beside it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping

import pytest

from tests.source_tree import PACKAGES, ROOT, dotted, modules, report, uses, within

# A package or module, what it must never import, and why.
NEVER: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("agent", ("search_backend", "web", "cli", "flask"), "agent reaches search by HTTP only"),
    ("search_backend", ("agent", "web", "cli"), "the search backend serves any client"),
    ("search_backend", ("asyncio", "anyio", "uvicorn"), "the search backend is plain WSGI"),
    ("web", ("cli",), "cli stands above web"),
    ("agent.events", ("agent.log", "agent.providers", "agent.tools"), "events are data"),
    ("agent.providers", ("agent.log", "agent.loop", "agent.runner", "agent.tools"), "a codec"),
    (
        "agent.tools",
        ("agent.log", "agent.loop", "agent.runner", "agent.providers"),
        "below the loop",
    ),
    (
        "agent.mcp",
        ("agent.log", "agent.loop", "agent.runner", "agent.providers"),
        "a source of tools",
    ),
    (
        "agent.log",
        ("agent.loop", "agent.runner", "agent.providers", "agent.tools"),
        "below the loop",
    ),
    (
        "search_backend.engines",
        (
            *("search_backend.fetch", "search_backend.app", "search_backend.engine_http"),
            *("search_backend.race", "search_backend.exchange"),
        ),
        "an engine is a leaf that moves no bytes",
    ),
    (
        "search_backend.pages",
        ("search_backend.engine_http", "search_backend.race", "search_backend.exchange"),
        "pages leave through fetch alone",
    ),
    (
        "search_backend.readers",
        ("search_backend.engine_http", "search_backend.race", "search_backend.exchange"),
        "pages leave through fetch alone",
    ),
    ("search_backend.readers", ("search_backend.fetch", "search_backend.app"), "readers are pure"),
)
# The loop gets provider, tools and log as arguments. Whatever it stands on is values and pure
# functions: none of these is reached from it, directly or through others.
LOOP_NEVER_REACHES = (
    *("agent.backend", "agent.log", "agent.mcp", "agent.providers", "agent.runner"),
    *("agent.settings", "agent.store", "agent.tools", "agent.transport"),
    *("os", "pathlib", "socket", "sqlite3", "subprocess", "threading"),
)
# Where the parts are put together: only there web may see the search backend.
COMPOSITION = {"web/__main__.py", "web/compose.py"}
# Modules that open connections, and the only modules (or packages) of ours that may import them.
DOORS: Mapping[str, tuple[str, ...]] = {
    # Engines and pages leave by two doors: engines stand in the user's settings and may be local,
    # pages are named by models and must not be. `exchange` and `race` hold no address of their own.
    "socket": (
        *(
            "agent.transport",
            "search_backend.fetch",
            "web.listen",
            "web.serve",
            "web.uvicorn_server",
        ),
        *("search_backend.engine_http", "search_backend.exchange", "search_backend.race"),
    ),
    "ssl": (
        *("agent.transport", "agent.lanes", "agent.trust", "search_backend.fetch"),
        *("search_backend.engine_http", "search_backend.exchange", "search_backend.trust"),
    ),
    "h11": ("search_backend.framing",),
    "http.client": (),
    "urllib.request": ("agent.proxies",),  # getproxies: which proxies the user has set
    # MCP servers stand in the user's settings; the SDK moves the bytes over a client made there.
    "httpx2": ("agent.transport", "agent.proxies", "agent.trust", "agent.mcp.http"),
    "httpcore2": ("agent.transport", "agent.lanes", "agent.proxies", "agent.sockets"),
    "httpx": (),
    "requests": (),
    "aiohttp": (),
    "urllib3": (),
}
# Folders in which one file is one part.
PLUGINS = (
    *("agent.providers", "agent.tools"),
    *("search_backend.engines", "search_backend.readers", "search_backend.shapes"),
)
# Discovery of such parts, names and commands that load on first use, the composition root. A module
# loaded by name is held to the layers like any import.
MAY_IMPORT_BY_NAME = (
    *("agent/__init__.py", "agent/providers/__init__.py", "agent/tools/__init__.py"),
    "agent/store/__init__.py",
    *("search_backend/engines/__init__.py", "search_backend/readers/__init__.py"),
    "search_backend/shapes/__init__.py",
    *("web/compose.py", "cli/"),
)


def test_all_four_packages_exist() -> None:
    """Every other rule here would hold trivially for a package that is not there."""
    missing = [p for p in PACKAGES if not (ROOT / p / "__init__.py").is_file()]
    report(missing, "packages without an __init__.py:")


@pytest.mark.parametrize(("package", "never", "why"), NEVER)
def test_layers_are_kept(package: str, never: tuple[str, ...], why: str) -> None:
    """Imports run in one direction."""
    problems = [
        f"{module.at(line.line)} imports {line.target}"
        for module in modules()
        if within(module.name, package)
        for line in module.imports
        if within(line.target, *never)
    ]
    report(problems, f"{package} never imports {', '.join(never)}: {why}.")


def test_web_meets_the_search_backend_only_where_all_is_put_together() -> None:
    """The rest of web would work with a search backend on another machine."""
    problems = [
        f"{module.at(line.line)} imports {line.target}"
        for module in modules()
        if within(module.name, "web") and module.path not in COMPOSITION
        for line in module.imports
        if within(line.target, "search_backend")
    ]
    report(problems, f"Only {', '.join(sorted(COMPOSITION))} may import search_backend.")


def test_the_loop_stands_on_values_only() -> None:
    """Everything that does something reaches the loop as an argument."""
    ours = {module.name: module for module in modules()}
    assert "agent.loop" in ours, "agent/loop.py is missing"
    reached, waiting = set[str](), ["agent.loop"]
    problems = []
    while waiting:
        module = ours[waiting.pop()]
        for line in module.imports:
            known = line.target in ours or line.target.partition(".")[0] in sys.stdlib_module_names
            if within(line.target, *LOOP_NEVER_REACHES) or not known:
                problems.append(f"{module.at(line.line)} imports {line.target}")
            elif line.target in ours and line.target not in reached:
                reached.add(line.target)
                waiting.append(line.target)
    report(problems, "agent/loop.py and what it stands on do no I/O and know no part:")


def test_types_import_the_standard_library_only() -> None:
    """The nouns depend on nothing, so everything may depend on them."""
    types = [m for m in modules() if m.path.endswith("/types.py")]
    assert {m.path for m in types} >= {"agent/types.py", "search_backend/types.py"}
    problems = [
        f"{module.at(line.line)} imports {line.target}"
        for module in types
        for line in module.imports
        if line.target.partition(".")[0] not in sys.stdlib_module_names
    ]
    report(problems, "types.py imports the standard library only.")


@pytest.mark.parametrize("package", PLUGINS)
def test_parts_of_one_kind_do_not_know_each_other(package: str) -> None:
    """A provider, engine, reader or tool can be deleted without touching its neighbours."""
    problems = []
    for module in modules():
        if not within(module.name, package) or module.name == package:
            continue
        own = module.name.removeprefix(package + ".").partition(".")[0]
        for line in module.imports:
            other = line.target.removeprefix(package + ".").partition(".")[0]
            inside = within(line.target, package) and line.target != package
            if inside and other != own and not other.startswith("_"):
                problems.append(f"{module.at(line.line)} imports {line.target}")
    report(problems, f"Inside {package}, a part imports only itself and shared _private modules.")


def test_there_is_no_import_cycle() -> None:
    """Each module can be understood after those that it imports."""
    names = {module.name for module in modules()}
    graph = {m.name: {i.target for i in m.imports if not i.by_name} & names for m in modules()}
    finished: set[str] = set()

    def cycle(name: str, path: tuple[str, ...]) -> str | None:
        if name in path:
            return " -> ".join([*path[path.index(name) :], name])
        if name in finished:
            return None
        found = next((c for n in sorted(graph[name]) if (c := cycle(n, (*path, name)))), None)
        finished.add(name)
        return found

    report([c for name in graph if (c := cycle(name, ()))], "Import cycles:")


def test_our_own_modules_are_imported_at_the_top() -> None:
    """An import inside a function hides a dependency; only discovery loads modules by name."""
    problems = [
        f"{module.at(line.line)} {line.inside}() imports {line.target}"
        for module in modules()
        for line in module.imports
        if line.inside and not line.by_name and within(line.target, *PACKAGES)
    ]
    problems += [
        f"{module.at(line)} uses {name}"
        for module in modules()
        if not module.path.startswith(MAY_IMPORT_BY_NAME)
        for name, line in uses(module, "importlib.import_module", "__import__")
    ]
    report(problems, "Import our own modules at the top of the file.")


def test_the_environment_is_read_in_one_place_a_side() -> None:
    """Settings are read once and passed down."""
    names = ("os.environ", "os.environb", "os.getenv", "os.putenv")
    # It hands on to its own processes what any program needs to run, and reads no setting.
    handing_on = "search_backend/workers.py"
    # They say what is wrong with settings that OpenSSL reads by itself.
    trust = ("agent/trust.py", "search_backend/trust.py")
    problems = [
        f"{module.at(line)} uses {name}"
        for module in modules()
        if module.path not in ("agent/settings.py", handing_on, *trust)
        and not module.path.startswith("cli/")
        for name, line in uses(module, *names)
    ]
    report(problems, "Only agent/settings.py and cli/ read the environment.")


def test_only_the_command_line_prints() -> None:
    """A library that prints cannot be used as one."""
    problems = [
        f"{module.at(line)} prints"
        for module in modules("agent", "search_backend", "web")
        for _, line in uses(module, "print")
    ]
    report(problems, "Only cli/ prints.")


def test_nothing_sleeps() -> None:
    """Waiting that cannot be woken is neither stoppable nor testable: wait on an event."""
    problems = [
        f"{module.at(line)} sleeps"
        for module in modules(*PACKAGES, "tests")
        for _, line in uses(module, "time.sleep")
    ]
    report(problems, "time.sleep is not used, in tests neither.")


def test_one_module_opens_sockets_for_pages_and_one_for_engines() -> None:
    """Others may hold a connected socket and wait for it; none makes a connection of its own."""
    makes = {"socket.socket", "socket.create_connection", "http.client.HTTPConnection"}
    found = {
        module.name
        for module in modules("search_backend")
        for node in module.nodes
        if isinstance(node, ast.Call) and dotted(node.func) in makes
    }
    assert found == {"search_backend.fetch", "search_backend.engine_http"}


@pytest.mark.parametrize("door", DOORS)
def test_each_way_out_has_one_door(door: str) -> None:
    """Who audits what leaves the machine has to read these files and no others."""
    problems = [
        f"{module.at(line.line)} imports {line.target}"
        for module in modules("agent", "search_backend", "web")
        if not within(module.name, *DOORS[door])
        for line in module.imports
        if within(line.target, door)
    ]
    report(problems, f"{door} is for {', '.join(DOORS[door]) or 'nobody'} only.")

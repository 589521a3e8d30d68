"""The shape of the house: who may import whom, and who may touch the outside.

Each rule is read off the source, so that a new file is held to it without being listed anywhere.
An exception needs an entry in one of the tables below, with its reason beside it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping

import pytest

from searchloop.cli.main import COMMANDS
from tests.source_tree import PACKAGES, dotted, modules, report, uses, within
from tests.tables import each_row

# The floors of a package, the lowest first: a folder imports from floors below its own.
FLOORS: Mapping[str, tuple[str, ...]] = {
    "agent": (
        *(
            "types errors text",
            "settings calls transport verdicts",
            "log search",
            "providers tools loop",
        ),
        *("guard observe", "run", "bare_agent", "mcp"),
    ),
    "search_backend": (
        *("types", "text", "plugin", "cache fetch readers", "library", "engines", "settings"),
        *("pages search", "other_apis", "api"),
    ),
    "searchloop": (
        *(
            "analysis",
            "compose error_codes events render",
            "auditing",
            "answer function_provider imports protocols",
        ),
        *("answer_types", "options streams", "library testing"),
    ),
}
# The floor below both: pure functions over text, which import nothing else of ours.
SHARED_FLOOR = "searchloop.analysis"
# What the library, the command line and the page share.
BELOW_WEB = (
    *(SHARED_FLOOR, "searchloop.auditing", "searchloop.compose", "searchloop.imports"),
    *("searchloop.protocols", "searchloop.render"),
)
# A package or module, what it must never import, and why.
NEVER: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "agent",
        ("search_backend", "searchloop", "web", "cli", "flask"),
        "agent reaches search by HTTP only",
    ),
    ("search_backend", ("agent", "searchloop", "web", "cli"), "it serves any client"),
    ("search_backend", ("anyio", "uvicorn"), "the search backend is plain WSGI"),
    (SHARED_FLOOR, ("agent", "search_backend", "web", "cli", "searchloop"), "it stands on nothing"),
    ("web", ("cli",), "cli stands above web"),
    ("web", ("searchloop",), "the library is for programs"),
    ("web", ("search_backend",), "the rest of web works with a search backend on another machine"),
    ("searchloop", ("web", "cli"), "programs that serve nothing load no server"),
    ("agent.log.events", ("agent.log.log", "agent.log.contract"), "events are data"),
    ("agent.providers", ("agent.log.log", "agent.loop", "agent.run", "agent.tools"), "a codec"),
    ("agent.tools", ("agent.log.log", "agent.providers"), "below the loop"),
    ("agent.mcp", ("agent.log.log", "agent.loop", "agent.providers"), "a source of tools"),
    (
        "search_backend.engines",
        (
            "search_backend.fetch.fetch",
            "search_backend.fetch.engine_client",
            "search_backend.search",
        ),
        "an engine is a leaf that moves no bytes",
    ),
    ("search_backend.pages.open_page", ("search_backend.fetch.fetch",), "reading fetches"),
    ("search_backend.readers", ("search_backend.fetch.fetch",), "readers are pure"),
    ("search_backend.readers", ("search_backend.fetch.engine_client",), "readers are pure"),
)
# The loop gets provider, tools and log as arguments. Whatever it stands on is values and pure
# functions: none of these is reached from it, directly or through others.
LOOP_NEVER_REACHES = (
    *("agent.guard", "agent.log.log", "agent.log.contract", "agent.mcp", "agent.providers"),
    *("agent.run", "agent.settings", "agent.tools", "agent.transport"),
    *("os", "pathlib", "socket", "sqlite3", "subprocess", "threading"),
)
# The commands that serve, or look at a server. The others work without one.
SERVING = {"cli.doctor", "cli.serve"}
# Modules that open connections, and the only modules (or packages) of ours that may import them.
DOORS: Mapping[str, tuple[str, ...]] = {
    # Engines and pages leave by two doors: engines stand in the user's settings and may be local,
    # pages are named by models and must not be.
    "socket": (
        *("agent.transport", "web.listen", "web.serve"),
        *("search_backend.fetch.fetch", "search_backend.fetch.engine_client"),
        "search_backend.fetch.client",
    ),
    "ssl": (
        *("agent.transport", "search_backend.fetch.fetch"),
        *("search_backend.fetch.engine_client", "search_backend.fetch.client"),
    ),
    "h11": (),
    "http.client": (),
    "urllib.request": ("agent.transport.trust",),  # getproxies: which proxies the user has set
    # MCP servers stand in the user's settings; the SDK moves the bytes over a client made there.
    "httpx2": ("agent.mcp.login",),
    "httpcore2": (),
    "httpx": (),
    "requests": (),
    "aiohttp": ("agent.transport.pool", "search_backend.fetch"),
    "yarl": ("agent.transport.pool", "search_backend.fetch"),
    "urllib3": (),
}
# Modules that stand on a slow library, or on patterns that are slow to compile, and are loaded when
# they are first used: an answer without citations and attachments needs no verdicts and no terms.
LOADED_LATE = (
    ("agent/transport/transport.py", "agent.transport.pool"),
    ("cli/mcp.py", "cli.serve"),
    ("cli/serve.py", "searchloop.protocols.mcp"),
    ("web/gateway.py", "searchloop.protocols.mcp"),
    *(("agent/search/citations.py", f"agent.verdicts.{it}") for it in ("check", "page")),
    *(
        ("agent/search/citations.py", f"agent.search.{it}")
        for it in ("claims", "marks", "mark_shapes")
    ),
    *(("agent/run/check_sources.py", it) for it in ("agent.verdicts.page", "agent.run.check_with")),
    ("agent/search/verdict_words.py", "agent.search.claims"),
    *(("cli/show.py", it) for it in ("agent.search.mark_shapes", "searchloop.render.export")),
    ("searchloop/answer.py", "searchloop.events"),
    *(("searchloop/answer.py", f"searchloop.render.{it}") for it in ("export", "shared_page")),
    ("searchloop/library.py", "searchloop.auditing.run"),
    ("searchloop/library.py", "searchloop.compose"),
    ("searchloop/library.py", "searchloop.compose.check"),
    ("agent/run/question/attached.py", "searchloop.analysis.terms"),
)
# Folders in which one file is one part.
PLUGINS = (
    *("agent.providers", "agent.tools"),
    *("search_backend.engines", "search_backend.readers", "search_backend.other_apis"),
    "search_backend.readers.services",
)
# Modules beside the parts that all of them may use.
SHARED = ("agent.tools.backend", "agent.tools.dispatcher")
# Discovery of such parts, names and commands that load on first use, the composition root. A module
# loaded by name is held to the layers like any import.
MAY_IMPORT_BY_NAME = (
    *("searchloop/__init__.py", "agent/providers/__init__.py", "agent/tools/__init__.py"),
    *("agent/log/__init__.py", "agent/log/log.py"),
    "search_backend/plugin/entry_points.py",
    *("searchloop/compose/__init__.py", "searchloop/imports/worker.py", "cli/main.py"),
)


@each_row(("package", "never", "why"), NEVER)
def test_layers_are_kept(package: str, never: tuple[str, ...], why: str) -> None:
    """Imports run in one direction."""
    problems = [
        f"{module.at(line.line)} imports {line.target}"
        for module in modules()
        if within(module.name, package)
        for line in module.imports
        if within(line.target, *never)
        if not within(line.target, *(BELOW_WEB if package == "web" else (SHARED_FLOOR,)))
    ]
    report(problems, f"{package} never imports {', '.join(never)}: {why}.")


@pytest.mark.parametrize("package", FLOORS)
def test_folders_stand_in_floors(package: str) -> None:
    """A folder imports from floors below its own, so there is one order to read them in."""
    floor = {n: i for i, names in enumerate(FLOORS[package]) for n in names.split()}
    problems = []
    for module in modules(package):
        own = _part(module.name, package)
        for line in module.imports:
            other = _part(line.target, package)
            if within(line.target, package) and other and other != own:
                if other not in floor or (own and own not in floor):
                    problems.append(f"{other if other not in floor else own} stands on no floor")
                elif own and floor[other] >= floor[own]:
                    problems.append(f"{module.at(line.line)} imports {line.target}")
    report(problems, f"{package}: {' < '.join(FLOORS[package])}")


def _part(name: str, package: str) -> str:
    """The folder or module directly below `package` that `name` lies in, or nothing."""
    return name.removeprefix(package).lstrip(".").partition(".")[0]


OPEN = re.compile(r"Others may import: ([^.]*)\.")


def test_each_folder_says_what_others_may_import() -> None:
    """Its __init__ names the modules that are for others; the rest is its own affair."""
    ours = {module.name: module for module in modules()}
    folders = {m.name: m for m in modules() if m.path.endswith("/__init__.py")}
    folders.pop("searchloop", None)
    problems, used = [], set[tuple[str, str]]()
    listed = {}
    for name, module in folders.items():
        said = OPEN.search(" ".join((ast.get_docstring(ast.parse(module.text)) or "").split()))
        listed[name] = set(re.findall(r"\w+", said[1])) if said else set()
    for module in ours.values():
        for line in module.imports:
            parts = line.target.split(".")
            for at in range(1, len(parts)):
                folder, inner = ".".join(parts[:at]), parts[at]
                if folder not in folders or f"{folder}.{inner}" not in ours:
                    continue
                if within(module.name, folder):
                    continue
                used.add((folder, inner))
                if inner not in listed[folder]:
                    problems.append(f"{module.at(line.line)} imports {folder}.{inner}")
    report(problems, "The folder's __init__ does not offer that to others:")
    idle = [f"{f}: {n}" for f, names in listed.items() for n in names if (f, n) not in used]
    report(idle, "Offered, and imported by nobody outside the folder:")


def test_only_commands_that_serve_load_the_server() -> None:
    """A question in the terminal needs no gate, no page and no API."""
    loading = {m.name for m in modules("cli") if any(within(i.target, "web") for i in m.imports)}
    assert loading == SERVING


# Parsers and stems of words: text in, tokens out.
_PURE = {*sys.stdlib_module_names, "markdown_it", "mdit_py_plugins", "Stemmer"}


def test_the_loop_stands_on_values_only() -> None:
    """Everything that does something reaches the loop as an argument."""
    ours = {module.name: module for module in modules()}
    assert "agent.loop" in ours, "agent/loop.py is missing"
    reached, waiting = set[str](), ["agent.loop"]
    problems = []
    while waiting:
        module = ours[waiting.pop()]
        for line in module.imports:
            known = line.target in ours or line.target.partition(".")[0] in _PURE
            if within(line.target, *LOOP_NEVER_REACHES) or not known:
                problems.append(f"{module.at(line.line)} imports {line.target}")
            elif line.target in ours and line.target not in reached:
                reached.add(line.target)
                waiting.append(line.target)
    report(problems, "agent/loop.py and what it stands on do no I/O and know no part:")


def test_types_import_the_standard_library_only() -> None:
    """The nouns depend on nothing, so everything may depend on them."""
    types = [m for m in modules() if "/types" in m.path]
    assert {m.path for m in types} >= {"agent/types/__init__.py", "search_backend/types.py"}
    problems = [
        f"{module.at(line.line)} imports {line.target}"
        for module in types
        for line in module.imports
        if line.target.partition(".")[0] not in sys.stdlib_module_names
        # which do the same
        and line.target
        not in ("agent.types.attachments", "agent.types.limits", "searchloop.analysis.told")
    ]
    report(problems, "types.py imports the standard library only.")


@pytest.mark.parametrize("package", PLUGINS)
def test_parts_of_one_kind_do_not_know_each_other(package: str) -> None:
    """A provider, engine, reader or tool can be deleted without touching its neighbours."""
    problems = []
    for module in modules():
        if not within(module.name, package) or module.name in (package, *SHARED):
            continue
        own = module.name.removeprefix(package + ".").partition(".")[0]
        for line in module.imports:
            other = line.target.removeprefix(package + ".").partition(".")[0]
            inside = within(line.target, package) and line.target not in (package, *SHARED)
            if inside and other != own and not other.startswith("_"):
                problems.append(f"{module.at(line.line)} imports {line.target}")
    report(problems, f"Inside {package}, a part imports only itself and shared _private modules.")


def test_each_command_is_seen_to_load_its_module() -> None:
    """The table of commands leads to every module of `cli` that serves one, and to no other."""
    ours = {m.name: m for m in modules("cli")}
    serving = {m.name for m in ours.values() if "\nARGUMENTS = {" in m.text}
    seen = {line.target for line in ours["cli.main"].imports if line.by_name}
    assert seen == serving | {"cli.errors", "cli.terminal.examples", "cli.terminal.pipes"}
    named = {name: module.removeprefix("searchloop.") for name, (module, _) in COMMANDS.items()}
    assert set(named.values()) == serving
    for name, module in named.items():
        assert f'"{name}": _' in ours[module].text, f"{module} does not declare {name}"


def test_there_is_no_import_cycle() -> None:
    """Each module can be understood after those that it imports, also by a name in a string."""
    names = {module.name for module in modules()}
    graph = {m.name: {i.target for i in m.imports} & names for m in modules()}
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
        if (module.path, line.target) not in LOADED_LATE
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
    handing_on = "search_backend/pages/workers.py"
    # They say what is wrong with settings that OpenSSL reads by itself.
    trust = ("agent/transport/trust.py", "search_backend/fetch/client.py")
    problems = [
        f"{module.at(line)} uses {name}"
        for module in modules()
        if module.path not in ("agent/settings/__init__.py", handing_on, *trust)
        and not module.path.startswith("cli/")
        for name, line in uses(module, *names)
    ]
    report(problems, "Only agent/settings/__init__.py and cli/ read the environment.")


def test_nothing_sleeps() -> None:
    """Waiting that cannot be woken is neither stoppable nor testable: wait on an event."""
    problems = [
        f"{module.at(line)} sleeps"
        for module in modules(*PACKAGES, "tests")
        for _, line in uses(module, "time.sleep")
    ]
    report(problems, "time.sleep is not used, in tests neither.")


def test_one_class_of_sockets_is_for_pages() -> None:
    """aiohttp connects them; nothing of ours makes a connection of its own."""
    makes = {"socket.socket", "socket.create_connection", "http.client.HTTPConnection"}
    nodes = [(module.name, node) for module in modules("search_backend") for node in module.nodes]
    calls = [(name, node.func) for name, node in nodes if isinstance(node, ast.Call)]
    bases = [
        (name, b) for name, node in nodes if isinstance(node, ast.ClassDef) for b in node.bases
    ]
    assert [name for name, called in calls if dotted(called) in makes] == []
    assert [name for name, base in bases if dotted(base) in makes] == ["search_backend.fetch.fetch"]


def test_the_search_backend_stays_plain_wsgi() -> None:
    """Its event loop belongs to the HTTP client: nothing but fetch and search awaits."""
    problems = [
        f"{module.at(line.line)} imports {line.target}"
        for module in modules("search_backend")
        if not within(module.name, "search_backend.fetch", "search_backend.search")
        for line in module.imports
        if within(line.target, "asyncio")
    ]
    report(problems, "asyncio is for search_backend.fetch and search_backend.search only.")


@each_row("door", DOORS)
def test_each_way_out_has_one_door(door: str) -> None:
    """Who audits what leaves the machine has to read these files and no others."""
    problems = [
        f"{module.at(line.line)} imports {line.target}"
        for module in modules("agent", "search_backend", "searchloop", "web")
        if not within(module.name, *DOORS[door])
        for line in module.imports
        if within(line.target, door)
    ]
    report(problems, f"{door} is for {', '.join(DOORS[door]) or 'nobody'} only.")

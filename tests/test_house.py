"""How the code is written: sizes, names, and what the page, the tests and the files never hold.

An exception needs an entry in one of the tables below, with its reason beside it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from tests.source_tree import (
    FOLDERS,
    PACKAGES,
    ROOT,
    Module,
    classes,
    code_lines,
    dotted,
    functions,
    modules,
    page_code_lines,
    report,
    strings,
    tracked_files,
    uses,
    within,
)
from tests.tables import each_row

PLUGINS = (
    "agent.providers",
    "agent.tools",
    "search_backend.engines",
    "search_backend.readers",
    "search_backend.other_apis",
    "searchloop.imports",
)
ENTRIES, FEWEST, MOST, FUNCTION_LINES, LOOP_LINES, CONSTRUCTOR_PARAMETERS = 14, 40, 450, 50, 120, 7
# Lines of code: no blanks, comments and docstrings. A budget goes down with each merge; a commit
# that raises one names the issue that asks for it.
BUDGET: Mapping[str, int] = {
    "agent": 22_625,
    "search_backend": 10_667,
    "web": 3_214,
    "cli": 3_008,
    "searchloop": 7_471,
    "the page's script and style": 11_497,
    "rule data, 100 characters a line": 682,
    "tests, with comments and blanks": 65_997,
}
# Data that holds no rules: patterns and lists of words count against the budget, these do not.
NO_RULES: Mapping[str, str] = {
    "search_backend/readers/_html/main_text.json": "weights that bench/extraction_fit.py makes",
    "agent/settings/agents.toml": "presets that people see",
    "agent/settings/settings.toml": "settings that people see",
    "agent/run/prices.toml": "prices that vendors publish",
    "cli/terminal/examples.txt": "help texts",
    "search_backend/api/schemas.toml": "the shape of an API",
    "web/api/schemas.toml": "the shape of an API",
    "web/static/app/manifest.webmanifest": "what a browser installs",
    "web/static/app/programs.json": "lines that people paste into other programs",
}
# A folder that may hold more than 14 entries (never above 18), and the reason.
FULLER: Mapping[str, str] = {
    "agent": "the loop's own modules beside one folder for each part that it is given",
    "agent/providers": "one folder a provider beside what they share: a new one moves nothing",
    "cli": "one file a group of commands: whoever looks for a command finds its file",
}
# A module below 40 lines that joins no other, and the reason. Plugins and __init__ need none.
SMALLER: Mapping[str, str] = {
    "cli/errors.py": "loads every kind of error, which `--help` and `--version` need not",
    "searchloop/error_codes.py": "a list that takes 2 ms to make, for programs that ask for it",
    "searchloop/library.py": "loads the agent and the search backend, `import searchloop` neither",
    "search_backend/pages/service_calls.py": "moves bytes, which `reading` asks for by an argument",
    "web/gate/sign_in.py": "one page, which the gate sends and knows nothing about",
}
VENDORS = (
    "anthropic|arxiv|brave|claude|crawl4ai|crossref|ddgs?|deepseek|duckduckgo|exa|firecrawl|gemini"
    "|jina|kagi|linkup|mojeek|ollama|openai|openalex|perplexity|pubmed|searxng|serper"
    "|tavily|wikipedia"
)
VENDOR = re.compile(rf"(?<![a-z])({VENDORS})(?![a-z0-9])", re.IGNORECASE)
# Help texts, defaults and the page's catalogue of words name vendors because people do.
VENDORS_WELCOME = (
    *("cli/", "agent/settings/__init__.py", "search_backend/settings.py"),
    "web/static/locales/",
)
# Each turns a string into markup or code inside the page.
UNSAFE_IN_PAGE = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment"
    r"|setHTML|srcdoc|\beval\b|new Function|javascript:|\son[a-z]+\s*=\s*[\"']"
)
# Places of one machine (`someone` is nobody): homes, and where this very clone lies; and where
# packages come from. In halves, or this file would match.
FOREIGN = re.compile(
    "|".join(
        [
            r"(?<![\w.:/<-])/(?:ro" + r"ot|home/(?!someone/)\w+|Users/\w+|tmp/\w+)/",
            rf"(?<![\w.:/<-]){re.escape(str(ROOT.parent))}/(?=\w)",
            "pypi" + r"\.org|pythonhosted" + r"\.org|registry\.npmjs" + r"\.org",
            "--(?:extra-)?" + "index-url|--find" + "-links",
        ]
    )
)


# https://developer.mozilla.org/docs/Web/Security/Secure_Contexts/features_restricted_to_secure_contexts
SECURE_ONLY = re.compile(
    r"crypto\.(?:randomUUID|subtle)|navigator\.(?:serviceWorker|storage|share)\b"
)
COMMENT = ("//", "*", "/*", "<!--")
# What no line of the page holds, and why. Words may name anybody.
NOT_IN_PAGE: Mapping[str, tuple[re.Pattern[str], tuple[str, ...]]] = {
    "The page builds nodes; it never turns strings into markup or code:": (UNSAFE_IN_PAGE, ()),
    "Over plain http, from another machine, browsers lack this:": (SECURE_ONLY, ()),
    "What models and engines there are comes from the server, and no vendor is named:": (
        *(VENDOR, VENDORS_WELCOME),
    ),
}


@each_row("rule", list(NOT_IN_PAGE))
def test_the_page_holds_nothing_of_these(rule: str) -> None:
    """What a model or a web page wrote reaches the browser as text and as nodes of known kinds; it
    works from another machine; and it branches on no vendor.
    """
    pattern, welcome = NOT_IN_PAGE[rule]
    static = sorted((ROOT / "web" / "static").rglob("*"))
    files = [path for path in static if path.suffix in {".js", ".mjs", ".html"}]
    assert files, "web/static holds no page"
    problems = [
        f"{name}:{number} has {match[0].strip()!r}"
        for path in files
        if not (name := path.relative_to(ROOT).as_posix()).startswith(welcome or "-")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if not (pattern is VENDOR and line.lstrip().startswith(COMMENT))
        for match in pattern.finditer(line)
    ]
    report(problems, rule)


def test_a_folder_holds_a_dozen_things() -> None:
    """Whoever opens a folder sees all of it at once."""
    entries = defaultdict[Path, set[Path]](set)
    for path in tracked_files():
        if path.relative_to(ROOT).parts[0] in FOLDERS:
            for inner, folder in pairwise((path, *path.parents)):
                entries[folder].add(inner)
    problems = []
    for folder in sorted(each for each in entries if ROOT in each.parents):
        name = folder.relative_to(ROOT).as_posix()
        count, allowed = len(entries[folder]), 18 if name in FULLER else ENTRIES
        if count > allowed:
            problems.append(f"{name}/ holds {count} entries of at most {allowed}")
        elif name in FULLER and count <= ENTRIES:
            problems.append(f"{name}/ holds {count} entries and needs no exception")
    report(problems, "Put what belongs together into a folder, or enter it in FULLER:")
    report([n for n, why in FULLER.items() if len(why) < 20], "FULLER without a reason:")


def test_a_module_is_neither_a_scrap_nor_a_warehouse() -> None:
    """40 to 450 lines: a file is worth opening and fits a sitting."""
    problems = []
    for module in modules(*PACKAGES, "bench", "scripts"):
        lines = module.text.count("\n")
        most = LOOP_LINES if module.name == "agent.loop" else MOST
        if lines > most:
            problems.append(f"{module.path} has {lines} lines of at most {most}")
        small = lines < FEWEST and module.path.partition("/")[0] in FOLDERS
        if small and not _may_be_small(module) and module.path not in SMALLER:
            problems.append(f"{module.path} has {lines} lines of at least {FEWEST}")
    report(problems, "Split it, or let it join its neighbour:")


def _may_be_small(module: Module) -> bool:
    return module.path.endswith(("/__init__.py", "/__main__.py")) or within(module.name, *PLUGINS)


def test_a_small_module_has_more_than_one_reader() -> None:
    """A module below 80 lines that one other imports belongs into that one."""
    readers = defaultdict[str, set[str]](set)
    for module in modules():
        for line in module.imports:
            readers[line.target].add(module.name)
    problems = [
        f"{module.path} has {lines} lines and is imported by {min(readers[module.name])} alone"
        for module in modules()
        if (lines := module.text.count("\n")) < 80
        and len(readers[module.name]) == 1
        and not _may_be_small(module)
        and module.path not in SMALLER
    ]
    report(problems, "Let it join the module that imports it:")


def test_no_public_class_name_stands_for_two_things() -> None:
    """Inside a package a name means one class."""
    found = defaultdict[tuple[str, str], list[str]](list)
    for module in modules():
        for node in ast.iter_child_nodes(module.nodes[0]):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[module.path.partition("/")[0], node.name].append(module.path)
    report(
        [f"{name}: {', '.join(paths)}" for (_, name), paths in found.items() if len(paths) > 1],
        "One class name, two classes:",
    )


def test_each_part_keeps_its_budget() -> None:
    """What is built is paid for by what is deleted."""
    spent = {name: sum(code_lines(m.text) for m in modules(name)) for name in PACKAGES}
    shipped = [p for p in tracked_files() if p.relative_to(ROOT).parts[0] in PACKAGES]
    page = [p for p in shipped if "static" in p.parts and p.suffix in {".js", ".css", ".html"}]
    rules = [p for p in shipped if p.suffix in {".toml", ".json", ".txt"}]
    rules = [p for p in rules if "locales" not in p.parts and not p.is_symlink()]
    spent["the page's script and style"] = sum(page_code_lines(p.read_text("utf-8")) for p in page)
    spent["rule data, 100 characters a line"] = sum(
        len(p.read_text("utf-8")) // 100
        for p in rules
        if p.relative_to(ROOT).as_posix() not in NO_RULES
    )
    spent["tests, with comments and blanks"] = sum(m.text.count("\n") for m in modules("tests"))
    assert spent.keys() == BUDGET.keys()
    report(
        [f"{n}: {spent[n]} of {most}" for n, most in BUDGET.items() if spent[n] > most],
        "Delete as much as you add:",
    )


def test_functions_and_constructors_stay_small() -> None:
    """A function fits a screen, a class needs few things to be made."""
    report(
        [p for module in modules(*PACKAGES, "bench", "scripts") for p in _too_large(module)],
        "Split it:",
    )


def test_exceptions_to_the_sizes_are_still_needed() -> None:
    """An exception that nothing needs any more is removed."""
    known = {m.path for m in modules(*PACKAGES, "bench", "scripts")}
    report(set(SMALLER) - known, "An exception names what does not exist:")
    report([key for key, why in SMALLER.items() if len(why) < 20], "Exceptions without a reason:")


def _too_large(module: Module) -> Iterator[str]:
    for function in functions(module):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        if length > FUNCTION_LINES:
            yield f"{module.at(function.lineno)} {function.name}() has {length} of {FUNCTION_LINES}"
    for cls in classes(module):
        for made in cls.body:
            if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                count = len([*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs]) - 1
                if count > CONSTRUCTOR_PARAMETERS:
                    yield f"{module.at(made.lineno)} {cls.name} takes {count} parameters"


def test_inheritance_stays_shallow() -> None:
    """At most one class of ours above a class of ours; exceptions may form a tree."""
    bases = {
        c.name: [dotted(b).rpartition(".")[2] for b in c.bases]
        for m in modules()
        for c in classes(m)
    }

    def depth(name: str, seen: tuple[str, ...] = ()) -> int:
        if name not in bases or name in seen:
            return 0
        return 1 + max((depth(base, (*seen, name)) for base in bases[name]), default=0)

    def is_error(name: str, seen: tuple[str, ...] = ()) -> bool:
        if name.endswith(("Error", "Exception")):
            return True
        return name not in seen and any(is_error(b, (*seen, name)) for b in bases.get(name, []))

    deep = [f"{name} ({depth(name)})" for name in bases if depth(name) > 2 and not is_error(name)]
    report(deep, "Classes more than two deep:")


def test_vendors_are_named_in_their_own_file_only() -> None:
    """Code that asks which vendor it is talking to belongs to that vendor's file.

    Sentences, comments and docstrings may name anybody; identifiers and strings without blanks,
    which is what code branches on, may not. A file or folder that bears a vendor's name is free.
    """
    problems = [
        f"{module.at(line)} names {word!r}"
        for module in modules()
        if not module.path.startswith(VENDORS_WELCOME)
        and not (within(module.name, *PLUGINS) and VENDOR.search(module.name))
        for word, line in _words(module)
        if VENDOR.search(word)
    ]
    report(problems, "A vendor is named outside its own provider, engine or reader:")


def _words(module: Module) -> Iterator[tuple[str, int]]:
    for node in module.nodes:
        if isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg | ast.keyword):
            yield node.arg or "", node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.lineno
        elif isinstance(node, ast.alias):
            yield node.name, node.lineno
    for constant in strings(module):
        if not re.search(r"\s", str(constant.value).strip()):
            yield str(constant.value), constant.lineno


def test_every_test_says_what_it_shows() -> None:
    """A test's docstring is the behaviour it holds."""
    problems = [
        f"{module.at(function.lineno)} {function.name}"
        for module in modules("tests")
        for function in functions(module)
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]
    report(problems, "Tests without a docstring:")


def test_tests_replace_nothing_inside_the_code() -> None:
    """If a test needs a patch, a seam is missing."""
    names = ("unittest.mock", "mock.patch", "patch", "monkeypatch.setattr", "monkeypatch.setitem")
    problems = [
        f"{module.at(line)} uses {name}"
        for module in modules("tests")
        for name, line in uses(module, *names, "mock", "MagicMock")
    ]
    problems += [
        f"{module.at(line.line)} imports {line.target}"
        for module in modules("tests")
        for line in module.imports
        if within(line.target, "unittest.mock", "mock", "pytest_mock")
    ]
    report(problems, "Tests use fake servers and arguments, not patches.")


def test_no_group_of_a_pattern_repeats_possessively() -> None:
    """Python before 3.11.5 misreads `(?:...)*+`, and Debian 12 has 3.11.2; `(?>(?:...)*)` is it."""
    shape = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+")
    problems = [
        module.at(constant.lineno)
        for module in modules()
        for constant in strings(module)
        if "(?" in constant.value and shape.search(constant.value)
    ]
    report(problems, "Patterns that older Pythons misread:")


def test_every_wire_format_is_tested_on_recorded_bytes() -> None:
    """A provider with a decoder, its own or a shared one, has tests/recordings/PROVIDER/."""
    problems = set()
    parts = [
        m for m in modules("agent") if within(m.name, "agent.providers") and m.name.count(".") > 1
    ]
    own = {m.name for m in parts if any(cls.name.endswith("Decoder") for cls in classes(m))}
    for module in parts:
        provider = module.name.split(".")[2]
        if provider.startswith("_"):
            continue
        decodes = module.name in own or any(line.target in own for line in module.imports)
        folder = ROOT / "tests" / "recordings" / provider
        if decodes and not any(path.is_file() for path in folder.rglob("*")):
            problems.add(f"tests/recordings/{provider}/ is missing or empty ({module.path})")
    report(problems, "Providers without a recording:")


def test_no_file_knows_one_machine() -> None:
    """No path of somebody's machine and no package index's address in any tracked file."""
    problems = [
        f"{path.relative_to(ROOT).as_posix()}:{number} has {match[0]!r}"
        for path in tracked_files()
        if (text := _text(path)) is not None
        for number, line in enumerate(text.splitlines(), 1)
        for match in FOREIGN.finditer(line)
    ]
    report(problems, "Machine paths or index addresses:")


def _text(path: Path) -> str | None:
    data = path.read_bytes()
    return None if b"\0" in data[:4096] else data.decode("utf-8", "replace")

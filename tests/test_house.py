"""How the code is written: sizes, names, and what the page, the tests and the files never hold.

An exception needs an entry in one of the tables below, with its reason beside it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.source_tree import (
    PACKAGES,
    ROOT,
    Module,
    classes,
    dotted,
    functions,
    modules,
    report,
    strings,
    tracked_files,
    uses,
    within,
)

PLUGINS = (
    "agent.providers",
    "search_backend.engines",
    "search_backend.readers",
    "search_backend.shapes",
)
MODULE_LINES, FUNCTION_LINES, LOOP_LINES, CONSTRUCTOR_PARAMETERS = 300, 50, 120, 7
# "path" or "path:function" -> why it may be larger.
LARGER: Mapping[str, str] = {}
VENDORS = (
    "anthropic|brave|claude|crawl4ai|ddgs?|duckduckgo|exa|firecrawl|gemini|jina|ollama|openai"
    "|perplexity|searxng|serper|tavily"
)
VENDOR = re.compile(rf"(?<![a-z])({VENDORS})(?![a-z0-9])", re.IGNORECASE)
# Help texts, defaults and the page's catalogue of words name vendors because people do.
VENDORS_WELCOME = (
    *("cli/", "agent/settings.py", "search_backend/settings.py"),
    "web/static/strings.",
)
# Each turns a string into markup or code inside the page.
UNSAFE_IN_PAGE = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment"
    r"|setHTML|srcdoc|\beval\b|new Function|javascript:|\son[a-z]+\s*=\s*[\"']"
)
# Places of one machine (`someone` is nobody), and where packages come from; in halves, or this
# file would match.
FOREIGN = re.compile(
    "|".join(
        [
            r"(?<![\w.:/<-])/(?:work|root|" + r"home/(?!someone/)\w+|Users/\w+|tmp/\w+)/",
            "pypi" + r"\.org|pythonhosted" + r"\.org|registry\.npmjs" + r"\.org",
            "--(?:extra-)?" + "index-url|--find" + "-links",
        ]
    )
)


def test_the_page_never_parses_markup() -> None:
    """What a model or a web page wrote reaches the browser as text and as nodes of known kinds."""
    static = ROOT / "web" / "static"
    files = [p for p in sorted(static.rglob("*")) if p.suffix in {".js", ".mjs", ".html"}]
    assert files, "web/static holds no page"
    problems = [
        f"{path.relative_to(ROOT).as_posix()}:{number} has {match[0].strip()!r}"
        for path in files
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for match in UNSAFE_IN_PAGE.finditer(line)
    ]
    report(problems, "The page builds nodes; it never turns strings into markup or code.")


# https://developer.mozilla.org/docs/Web/Security/Secure_Contexts/features_restricted_to_secure_contexts
SECURE_ONLY = re.compile(
    r"crypto\.(?:randomUUID|subtle)|navigator\.(?:serviceWorker|storage|share)\b"
)


def test_the_page_works_over_plain_http_from_another_machine() -> None:
    """What browsers keep for secure origins is not there then."""
    problems = [
        f"{path.relative_to(ROOT).as_posix()}:{number} uses {match[0]}"
        for path in sorted((ROOT / "web" / "static").rglob("*.js"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for match in SECURE_ONLY.finditer(line)
    ]
    report(problems, "Do without it:")


def test_modules_and_functions_stay_small() -> None:
    """A file fits a sitting, a function fits a screen, a class needs few things to be made."""
    report(
        [p for module in modules(*PACKAGES, "bench", "scripts") for p in _too_large(module)],
        "Split it, or enter it in LARGER with the reason:",
    )


def test_exceptions_to_the_sizes_are_still_needed() -> None:
    """An exception that nothing needs any more is removed."""
    everything = modules(*PACKAGES, "bench", "scripts")
    known = {m.path for m in everything}
    known |= {f"{m.path}:{f.name}" for m in everything for f in functions(m)}
    report(set(LARGER) - known, "LARGER names what does not exist:")
    report([key for key, reason in LARGER.items() if len(reason) < 20], "LARGER without a reason:")


def _too_large(module: Module) -> Iterator[str]:
    lines = module.text.count("\n")
    limit = LOOP_LINES if module.name == "agent.loop" else MODULE_LINES
    if lines > limit and module.path not in LARGER:
        yield f"{module.path} has {lines} lines of at most {limit}"
    for function in functions(module):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        if length > FUNCTION_LINES and f"{module.path}:{function.name}" not in LARGER:
            yield f"{module.at(function.lineno)} {function.name}() has {length} of {FUNCTION_LINES}"
    for cls in classes(module):
        for made in cls.body:
            if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                count = len([*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs]) - 1
                if count > CONSTRUCTOR_PARAMETERS and f"{module.path}:__init__" not in LARGER:
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


def test_the_page_branches_on_no_vendor() -> None:
    """What models and engines there are comes from the server; only words may name them."""
    problems = [
        f"{name}:{number} names {match[0]!r}"
        for path in sorted((ROOT / "web" / "static").rglob("*.js"))
        if not (name := path.relative_to(ROOT).as_posix()).startswith(VENDORS_WELCOME)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if not line.lstrip().startswith(("//", "*", "/*"))
        for match in VENDOR.finditer(line)
    ]
    report(problems, "A vendor is named in the page:")


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


def test_every_wire_format_is_tested_on_recorded_bytes() -> None:
    """A provider with a decoder brings transcripts: tests/recordings/PROVIDER/."""
    problems = set()
    for module in modules("agent"):
        if not within(module.name, "agent.providers") or module.name == "agent.providers":
            continue
        provider = module.name.split(".")[2]
        decodes = any(cls.name.endswith("Decoder") for cls in classes(module))
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

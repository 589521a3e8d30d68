"""The source as data: which modules there are, what they import, what they name.

Read once for all structural tests. Nothing of the project is imported here.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What is installed is `searchloop`, which holds the four others: `searchloop.agent` is agent/ here,
# and module names are written without that first part.
FOLDERS = ("agent", "cli", "search_backend", "web")
PACKAGES = (*FOLDERS, "searchloop")


@dataclass(frozen=True)
class Import:
    """One import. `target` is a dotted module name; `inside` a function's name, or empty.

    `by_name` marks a module that `import_module` loads when it is first needed: it stands in the
    call, or in a table of the module that makes the call.
    """

    target: str
    line: int
    inside: str
    by_name: bool = False


@dataclass(frozen=True)
class Module:
    """One Python file. `path` is relative to the project, with slashes."""

    name: str
    path: str
    text: str

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Its syntax, the module first."""
        return _parsed(self.text, self.path)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Every import, wherever it stands."""
        package = self.name if self.path.endswith("/__init__.py") else self.name.rpartition(".")[0]
        return (*_imports(self.nodes[0], package, _known(), ""), *_table(self))

    def at(self, line: int) -> str:
        """Where in the project, for a message."""
        return f"{self.path}:{line}"


@lru_cache(maxsize=1)  # that of all modules takes 200 MB
def _parsed(text: str, path: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text, path)))


def modules(*folders: str) -> tuple[Module, ...]:
    """Every Python file in these top folders (by default the five packages), sorted by path."""
    return tuple(m for m in _everything() if m.path.partition("/")[0] in (folders or PACKAGES))


@cache
def _everything() -> tuple[Module, ...]:
    folders = (*PACKAGES, "bench", "scripts", "tests")
    found = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    paths = [path for path in found if "node_modules" not in path.parts]
    return tuple(
        Module(_name(path), path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
        for path in paths
    )


@cache
def _known() -> frozenset[str]:
    return frozenset(module.name for module in _everything())


def code_lines(text: str) -> int:
    """Lines with code on them: neither blank nor only a comment or a docstring."""
    none = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (*none, tokenize.ENDMARKER):
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        holder = isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
        if holder and ast.get_docstring(node) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def page_code_lines(text: str) -> int:
    """The same for JavaScript, CSS and HTML as their formatter lays them out."""
    bare = re.sub(r"/\*.*?\*/|<!--.*?-->", "", text, flags=re.DOTALL)
    return sum(not re.match(r"\s*(?://.*)?$", line) for line in bare.splitlines())


@cache
def tracked_files() -> tuple[Path, ...]:
    """What git tracks or would track; for a copy without git, everything that is not hidden."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        out = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        paths = [ROOT / name for name in out.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [
            p for p in ROOT.rglob("*") if not any(s[0] == "." for s in p.parts[len(ROOT.parts) :])
        ]
    return tuple(path for path in paths if path.is_file())


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method, nested ones too."""
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def classes(module: Module) -> Iterator[ast.ClassDef]:
    """Every class, nested ones too."""
    return (node for node in module.nodes if isinstance(node, ast.ClassDef))


def dotted(node: ast.AST) -> str:
    """`a.b.c` for such an expression, else the empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""


def uses(module: Module, *names: str) -> Iterator[tuple[str, int]]:
    """Where `module` uses one of these dotted names, written out or imported by `from`."""
    if not any(name.rpartition(".")[2] in module.text for name in names):
        return  # most modules need no parsing
    for node in module.nodes:
        if isinstance(node, ast.Attribute | ast.Name) and dotted(node) in names:
            yield dotted(node), node.lineno
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if f"{node.module}.{alias.name}" in names:
                    yield f"{node.module}.{alias.name}", node.lineno


def strings(module: Module) -> Iterator[ast.Constant]:
    """Every string constant that is not a docstring or another statement of its own."""
    prose = {id(node.value) for node in module.nodes if isinstance(node, ast.Expr)}
    for node in module.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node


def within(target: str, *packages: str) -> bool:
    """Whether module `target` is one of `packages` or lies inside one."""
    return any(target == package or target.startswith(package + ".") for package in packages)


def report(problems: Iterable[str], rule: str) -> None:
    """Fail with all problems and the rule they break."""
    found = sorted(set(problems))
    assert not found, rule + "\n  " + "\n  ".join(found)


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(node: ast.AST, package: str, known: frozenset[str], inside: str) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(_ours(alias.name), child.lineno, inside)
        elif isinstance(child, ast.ImportFrom):
            base = _ours(_absolute(child, package))
            for alias in child.names:
                inner = f"{base}.{alias.name}"
                yield Import(inner if inner in known else base, child.lineno, inside)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _imports(child, package, known, inside or getattr(child, "name", "lambda"))
        else:
            if isinstance(child, ast.Call) and (target := _loaded_by_name(child)):
                yield Import(_ours(target), child.lineno, inside, by_name=True)
            yield from _imports(child, package, known, inside)


def _ours(target: str) -> str:
    """Returns `agent.loop` for `searchloop.agent.loop`, and other names as they are."""
    inner = target.removeprefix("searchloop.")
    return inner if inner.partition(".")[0] in FOLDERS else target


def _table(module: Module) -> Iterator[Import]:
    """The modules of ours that a module names in strings, when it loads one by a variable."""
    if any(isinstance(n, ast.Call) and _by_variable(n) for n in module.nodes):
        for constant in strings(module):
            if "." in constant.value and (target := _ours(constant.value)) in _known():
                yield Import(target, constant.lineno, "", by_name=True)


def _by_variable(call: ast.Call) -> bool:
    return _loads(call) and not isinstance(call.args[0], ast.Constant | ast.JoinedStr)


def _loads(call: ast.Call) -> bool:
    name = dotted(call.func).rpartition(".")[2]
    return name in ("import_module", "__import__") and bool(call.args)


def _loaded_by_name(call: ast.Call) -> str:
    if not _loads(call):
        return ""
    first = call.args[0].values[0] if isinstance(call.args[0], ast.JoinedStr) else call.args[0]
    return str(first.value).rstrip(".") if isinstance(first, ast.Constant) else ""


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)

"""Says what each condition of the verdicts is worth: `python -m bench.conditions FILE...`.

Each test of an `if`, each part of an `and` or `or`, each filter of a loop in `agent/verdicts` is
held at true, then at false, and the verdicts on the labelled claims (in a form that
`bench.labelled` reads) that met it otherwise are asked again. A line tells how many verdicts
change, and how many of those are better or worse without the condition. One that changes none is
needed by a promise's test alone, or should go. A set of 3,000 claims takes half an hour.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any, NamedTuple

from bench.labelled import Labelled, read

_PACKAGE = "searchloop.agent.verdicts"
# Each behind those that it imports.
_MODULES = ("numbers", "dates", "text", "page", "compare", "derived", "vetoes", "score", "check")
_MOST = 250  # claims that are asked again for one condition
_TICKED, _ACCUSED = ("quoted", "supported"), ("contradicted", "misquoted")


class Condition(NamedTuple):
    """A part of a test in the source."""

    place: str  # module:line
    source: str


class Probe(ast.NodeTransformer):
    """Wraps each condition of a module in a call of `_probe(number, value)`."""

    def __init__(self, name: str, source: str, found: list[Condition]) -> None:
        self.name, self.source, self.found = name, source, found
        self.truth: list[bool] = []  # whether the function around returns bool

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Remembers whether what it returns is a condition."""
        self.truth.append(node.returns is not None and ast.unparse(node.returns) == "bool")
        self.generic_visit(node)
        self.truth.pop()
        return node

    def visit_If(self, node: ast.If | ast.IfExp) -> ast.AST:
        """Takes the test apart."""
        self.generic_visit(node)
        node.test = self._apart(node.test)
        return node

    visit_IfExp = visit_If

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """Takes the filters apart."""
        self.generic_visit(node)
        node.ifs = [self._apart(test) for test in node.ifs]
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """Takes apart what tells yes or no."""
        self.generic_visit(node)
        if node.value is not None and self.truth and self.truth[-1]:
            node.value = self._apart(node.value)
        return node

    def _apart(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.BoolOp):
            node.values = [self._apart(each) for each in node.values]
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self._apart(node.operand)
            return node
        named = any(isinstance(each, ast.NamedExpr) for each in ast.walk(node))
        if named or isinstance(node, ast.Constant):
            return node  # without it there is no name, or nothing to ask
        source = ast.get_source_segment(self.source, node) or ast.unparse(node)
        self.found.append(Condition(f"{self.name}:{node.lineno}", " ".join(source.split())))
        number = ast.Constant(len(self.found) - 1)
        return ast.copy_location(ast.Call(ast.Name("_probe", ast.Load()), [number, node], []), node)


class Rig:
    """The modules of the verdicts, instrumented; they take the place of the real ones."""

    def __init__(self) -> None:
        self.conditions: list[Condition] = []
        self.held: tuple[int, bool] | None = None
        self.row = -1
        self.met: dict[tuple[int, bool], set[int]] = defaultdict(set)
        package = import_module(_PACKAGE)
        self.modules = [self._load(name) for name in _MODULES]
        for name, module in zip(_MODULES, self.modules, strict=True):
            setattr(package, name, module)

    def _load(self, name: str) -> Any:
        spec = find_spec(f"{_PACKAGE}.{name}")
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin).read_text("utf-8")
        tree = Probe(name, source, self.conditions).visit(ast.parse(source))
        module = module_from_spec(spec)
        vars(module)["_probe"] = self.probe
        sys.modules[spec.name] = module
        code = compile(ast.fix_missing_locations(tree), spec.origin, "exec")
        exec(code, vars(module))  # noqa: S102
        return module

    def probe(self, number: int, value: Any) -> Any:
        """Returns a condition's value, or what it is held at."""
        if self.held and self.held[0] == number:
            return self.held[1]
        if self.row >= 0:
            self.met[number, bool(value)].add(self.row)
        return value

    def verdict(self, each: Labelled) -> str:
        """Returns the verdict on a claim; nothing is remembered of other claims."""
        for function in (f for module in self.modules for f in vars(module).values()):
            if hasattr(function, "cache_clear"):
                function.cache_clear()
        checking, page = self.modules[-1], self.modules[_MODULES.index("page")]
        name: str = checking.check(each.claim, page.Page(each.text)).verdict
        return name


def worth(right: bool, verdict: str) -> int:
    """Returns how good a verdict is on a claim that is right or not, from -2 to 2."""
    ticked, accused = verdict in _TICKED, verdict in _ACCUSED
    return 2 * ticked - accused if right else accused - 2 * ticked


def changed(rig: Rig, rows: Sequence[Labelled], before: Sequence[str], ask: Sequence[int]) -> bytes:
    """Returns a letter for each claim of `ask`, asked in a process of its own: =, + or -."""
    reading, writing = os.pipe()
    if not os.fork():
        found = []
        for number in ask:
            each = rows[number]
            try:
                after = rig.verdict(each)
            except Exception:  # a condition may stand before what would fail
                after = ""
            better = worth(each.right, after) > worth(each.right, before[number])
            found.append("=" if after == before[number] else "+" if better and after else "-")
        os.write(writing, "".join(found).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        letters = pipe.read()
    os.wait()
    return letters


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a line for each condition, the worthless ones last; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.conditions", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--every", type=int, default=1, help="take every Nth claim")
    parser.add_argument("--of", default="", help="only conditions of this module, as `vetoes`")
    args = parser.parse_args(argv)
    rows = [each for file in args.files for each in read(file)][:: args.every]
    rig = Rig()
    before = []
    for rig.row, each in enumerate(rows):
        before.append(rig.verdict(each))
    rig.row = -1
    print(f"{len(rows)} claims, {len(rig.conditions)} conditions")
    print(f"{'held at':8} {'met':>6} {'changed':>7} {'better':>6} {'worse':>5}  condition")
    idle = []
    for number, condition in enumerate(rig.conditions):
        for value in (True, False):
            if not condition.place.startswith(args.of):
                continue
            met = sorted(rig.met[number, not value])
            ask = random.Random(number).sample(met, min(_MOST, len(met)))
            rig.held = (number, value)
            count = Counter(changed(rig, rows, before, ask).decode())
            rig.held = None
            line = f"{value!s:8} {len(met):6} {count['+'] + count['-']:7} {count['+']:6}"
            line += f" {count['-']:5}  {condition.place} {condition.source}"
            if count["+"] + count["-"]:
                print(line, flush=True)
            else:
                idle.append(line)
    print("\nno verdict of these sets changes without:", *idle, sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

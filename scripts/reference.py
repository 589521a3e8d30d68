"""Write the reference, docs/reference/*.md, from the code.

usage: python scripts/reference.py [--check]

Each page begins with words of its own; what follows the comment `<!-- made from the code -->` is
written anew. With --check nothing is written; the exit code is 1 when a page is stale.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import EnumType
from functools import cache
from pathlib import Path
from typing import Any, is_typeddict

import searchloop
from searchloop import compose, testing
from searchloop.agent.providers import names
from searchloop.cli.main import parser_of
from searchloop.cli.terminal.examples import subparsers, subparsers_of
from searchloop.search_backend.api import schemas as search_openapi
from searchloop.web import flask_app
from searchloop.web.api import openapi

ROOT = Path(__file__).resolve().parent.parent
MAN = ROOT / "docs" / "searchloop.1"
CODES = ROOT / "searchloop" / "error_codes.py"
FOLDERS = ("agent", "cli", "search_backend", "searchloop", "web")
REFUSALS = ROOT / "agent" / "transport" / "faults.toml"
ABOUT = "ask any model, with one honest web-search switch, and check every source"
MARK = "<!-- made from the code -->"
# Where a public name lives -> the heading it stands under; the first that fits.
GROUPS = {
    "searchloop.agent.(providers|transport|types|calls)": "For providers of models",
    "searchloop.search_backend": "For search engines and readers",
    "": "To ask, to check, to add tools",
}
HOMES: dict[str, tuple[str, str]] = dict(vars(searchloop)["_homes"]())
del HOMES["__version__"]
# The errors that users meet: they take a code, what happened, and what to do.
RAISED = re.compile(r"(?:[A-Z]\w*Error|Problem|Conflict|Refusal)$")


def main(arguments: list[str]) -> int:
    """0 when the pages are as they should be, now or already."""
    code = 0
    for name, made in PARTS.items():
        page = ROOT / "docs" / "reference" / f"{name}.md"
        text = page.read_text("utf-8")
        written = re.sub(r"[^\S\n]+$", "", f"{text.partition(MARK)[0]}{MARK}\n{made()}", flags=re.M)
        fresh = re.sub(r"\n{3,}", "\n\n", written).rstrip() + "\n"
        if fresh != text and "--check" in arguments:
            print(f"docs/reference/{name}.md is stale: scripts/reference.py writes it anew")
            code = 1
        elif fresh != text:
            page.write_text(fresh, "utf-8")
    for file, written in ((MAN, man()), (CODES, codes())):
        if "--check" not in arguments:
            file.write_text(written, "utf-8")
        elif written != file.read_text("utf-8"):
            print(f"{file.name} is stale: scripts/reference.py writes it anew")
            code = 1
    return code


def man() -> str:
    """The manual page: each command with its arguments, as `man searchloop` shows it."""
    whole = parser_of(None)
    out = ['.TH SEARCHLOOP 1 "" "searchloop"', ".SH NAME", r"searchloop \- " + roff(ABOUT)]
    out += [".SH SYNOPSIS", r"searchloop COMMAND ...", ".br", r'searchloop "QUESTION"']
    out += [".SH DESCRIPTION", roff(whole.description or "")]
    out += ["Without a command, a question is asked; without anything, a chat begins."]
    out += [".SH COMMANDS"]
    for prog, parser in subparsers(whole):
        out += [f".SS {roff(prog)}", roff(parser.description or "")]
        for each in parser._actions:
            if each.help == argparse.SUPPRESS or isinstance(each, argparse._SubParsersAction):
                continue
            shown, help, _ = words(each)
            out += [".TP", rf"\fB{roff(shown.replace('`', ''))}\fR", roff(help) or r"\&"]
        if parser.epilog:
            out += [".PP", ".nf", *map(roff, parser.epilog.splitlines()), ".fi"]
    out += [".SH FILES", r"~/.local/share/searchloop, or SEARCHLOOP_HOME", ".SH EXIT STATUS"]
    out += ["0 for an answer, 1 for a failure, 2 for bad input,"]
    out += ["3 for a limit that was reached, 130 when it was stopped."]
    return "\n".join(line for line in out if line) + "\n"


def roff(text: str) -> str:
    """A text for man: what it would take for orders is escaped."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text


def cell(text: object) -> str:
    """Text for a cell of a table: on one line, without bars or tags."""
    return plain(" ".join(str(text).split())).replace("|", "\\|")


def plain(text: str) -> str:
    """Markdown in which `<` outside of code is a sign, not a tag."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else p.replace("<", "&lt;") for p in parts)


def table(head: str, rows: Iterable[Iterable[object]]) -> str:
    """A table; empty without rows. `head` names the columns, with a bar between two."""
    lines = ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    rule = "|---" * (head.count("|") + 1) + "|"
    return "\n".join(["", f"| {head} |", rule, *lines, ""]) if lines else ""


# --- the command line ---


def cli() -> str:
    """Each command with its arguments, actions and examples, as its parser declares them."""
    out = list[str]()
    for parser in subparsers_of(parser_of(None)):
        out += command(parser, 2)
    return "\n".join(out)


class Wide(argparse.HelpFormatter):
    """Writes a usage on one line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=10_000)


def usage(parser: argparse.ArgumentParser) -> str:
    """Its usage on lines of our own: each Python breaks them otherwise."""
    parser.formatter_class = Wide
    said = parser.format_usage().removeprefix("usage: ")
    lines = [""]
    for part in re.findall(r"\[(?:[^][]|\[[^][]*\])*\]|\S+", said):
        if len(lines[-1]) + len(part) > 78:
            lines.append("")
        lines[-1] = f"{lines[-1]} {part}".strip()
    return "\n".join(lines)


def command(parser: argparse.ArgumentParser, level: int, help: str = "") -> Iterator[str]:
    """One parser, and those of its actions below it."""
    yield f"\n{'#' * level} {parser.prog}\n\n{plain(parser.description or help)}\n"
    yield f"```text\n{usage(parser)}\n```\n"
    shown = [a for a in parser._actions if a.help != argparse.SUPPRESS and a.dest != "help"]
    below = [a for a in shown if isinstance(a, argparse._SubParsersAction)]
    yield table("argument | meaning | default", (words(a) for a in shown if a not in below))
    if parser.epilog:
        yield f"\n```text\n{inspect.cleandoc(parser.epilog)}\n```\n"
    for group in below:
        helps = {choice.dest: choice.help or "" for choice in group._choices_actions}
        for name, one in group.choices.items():
            yield from command(one, level + 1, helps.get(name, ""))


def words(action: argparse.Action) -> tuple[str, str, str]:
    """An argument as people type it, what it means, and what it is by itself."""
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    value = "" if action.nargs == 0 else str(action.metavar or choices or action.dest.upper())
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    shown = f"{names} `{value}`" if names and value else names or f"`{value}`"
    default = "" if action.default in (None, False, argparse.SUPPRESS, []) else action.default
    help = (action.help or "") % {**vars(action), "prog": "searchloop"}
    return shown, help, f"`{default}`" if default != "" else ""


# --- the HTTP APIs ---


def http() -> str:
    """The routes of the server, as its openapi.json has them."""
    assert flask_app.__doc__  # importing it declares the routes
    return routes(openapi.document())


def search_http() -> str:
    """The routes of the search backend."""
    return routes(search_openapi.document(secured=False))


def routes(document: Mapping[str, Any]) -> str:
    """Each route with its parameters, body and answer; then the named shapes."""
    out = ["\n## Routes\n"]
    for path, methods in document["paths"].items():
        for method, op in methods.items():
            out.append(f"\n### {method.upper()} `{path}`\n\n{plain(op['summary'])}\n")
            given = [(f"`{p['name']}`", p["in"], *kind(p["schema"])) for p in parameters(op)]
            out.append(table("parameter | in | type | meaning", given))
            body = op.get("requestBody", {}).get("content", {})
            out += [f"Body: {named(form, body[form])}\n" for form in body]
            for status, answer in op["responses"].items():
                for form, content in answer.get("content", {}).items():
                    if not status.endswith("XX"):
                        out.append(f"{status}: {named(form, content)}\n")
    out.append("\n## Shapes\n")
    for name, schema in document["components"]["schemas"].items():
        out.append(f"\n### {name}\n\n{plain(schema.get('description', ''))}\n")
        needed = schema.get("required", ())
        fields = schema.get("properties", {}).items()
        rows = [(f"`{f}`{'' if f in needed else '?'}", *kind(s)) for f, s in fields]
        out.append(table("field | type | meaning", rows))
    return "\n".join(out)


def parameters(op: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parameters of an operation."""
    return list(op.get("parameters", ()))


def named(form: str, content: Mapping[str, Any]) -> str:
    """A media type, and the shape of what comes in it."""
    shape = kind(content["schema"])[0] if content.get("schema") else ""
    return f"`{form}`" + (f", {shape}" if shape not in ("", "any") else "")


def kind(schema: Mapping[str, Any]) -> tuple[str, str]:
    """The type of a value as words, and what is said of it."""
    said = schema.get("description", "")
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})", said
    for many in ("anyOf", "oneOf", "allOf"):
        if many in schema:
            return " or ".join(kind(one)[0] for one in schema[many]), said
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"]), said
    if "const" in schema:
        return f"`{schema['const']}`", said
    types = schema.get("type", "any")
    text = types if isinstance(types, str) else " or ".join(types)
    if "items" in schema:
        text = text.replace("array", f"list of {kind(schema['items'])[0]}")
    return text, said


# --- Python ---


def python() -> str:
    """The public names of `searchloop` by what they are for, with their own words."""
    found = defaultdict[str, list[str]](list)
    for name, (module, _) in sorted(HOMES.items()):
        group = next(title for start, title in GROUPS.items() if re.match(start, module))
        found[group].append(name)
    out = []
    for title in reversed(GROUPS.values()):
        out += [f"\n## {title}\n"] if found[title] else []
        for name in found[title]:
            out += public(name, getattr(searchloop, name))
    out.append(f"\n## For tests\n\n`from {testing.__name__} import NAME`")
    for name, thing in sorted(vars(testing).items()):
        if getattr(thing, "__module__", "") == testing.__name__ and name[0] != "_":
            out += public(name, thing)
    return "\n".join(out)


def public(name: str, thing: Any) -> Iterator[str]:
    """One name: how it is called, what it says; fields of a dict, properties and methods."""
    yield f"\n### {name}\n\n```python\n{signature(name, thing)}\n```\n\n{docstring(thing)}\n"
    if not inspect.isclass(thing):
        return
    if is_typeddict(thing):
        fields = inspect.get_annotations(thing).items()  # those of its bases too
        rows = ((f"`{n}`", f"`{getattr(k, '__forward_arg__', k)}`") for n, k in fields)
        yield table("field | type", rows)
        return
    for inner, member in members(thing).items():
        if inner.startswith("_") or not inspect.getdoc(member):
            continue
        if isinstance(member, property):
            yield f"\n#### {name}.{inner}\n\n{docstring(member)}\n"
        elif callable(member) or isinstance(member, classmethod | staticmethod):
            call = signature(f"{name}.{inner}", getattr(thing, inner))
            yield f"\n#### {name}.{inner}\n\n```python\n{call}\n```\n\n{docstring(member)}\n"


def members(thing: type) -> dict[str, Any]:
    """What a class has of its own, or from classes of ours that nobody imports."""
    known = {getattr(searchloop, name) for name in HOMES} - {thing}
    ours = [cls for cls in thing.__mro__ if cls.__module__.startswith("searchloop")]
    told = [cls for public in known.intersection(ours) for cls in public.__mro__]
    found: dict[str, Any] = {}
    for cls in reversed([cls for cls in ours if cls not in told]):
        found |= vars(cls)
    return found


def signature(name: str, thing: Any) -> str:
    """The call as Python writes it, one parameter a line where it is long."""
    if not callable(thing):
        return f"{name}: {thing}"
    if isinstance(thing, EnumType):
        return name
    try:
        said = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    if str(said) == "(*args, **kwargs)":  # of a class that some Pythons cannot tell
        return name
    given = [str(p) for p in said.parameters.values() if p.name != "self"]
    alone = [p.name for p in said.parameters.values() if p.kind is p.KEYWORD_ONLY]
    if alone and not any(p.startswith("*") and p[1] != "*" for p in given):
        given.insert(next(i for i, p in enumerate(given) if p.startswith(alone[0])), "*")
    back = "" if said.return_annotation in (said.empty, "None") else f" -> {said.return_annotation}"
    name = f"await {name}" if inspect.iscoroutinefunction(thing) else name
    shown = f"{name}({', '.join(given)}){back}"
    if len(shown) > 88:
        shown = "\n".join([f"{name}(", *(f"    {p}," for p in given), f"){back}"])
    shown = re.sub(r"(: |-> )'([^']*)'", r"\1\2", shown)
    return re.sub(r"= <.*>(?=,?$|[,)])", "= ...", shown, flags=re.M)


def docstring(thing: Any) -> str:
    """Its docstring; what is set in or begins with `>>>` is code."""
    out = []
    for block in re.split(r"\n\n+", inspect.getdoc(thing) or ""):
        code = textwrap.dedent(block)
        out.append(f"```{lexer(code)}\n{code}\n```" if is_code(block) else plain(block))
    return "\n\n".join(out)


def is_code(block: str) -> bool:
    """Whether a paragraph is an example: set in, or a call that is whole Python."""
    return block.startswith(("    ", ">>>")) or ("(" in block and lexer(block) == "python")


def lexer(code: str) -> str:
    """Python where it is whole Python, so that it can be shown in colours."""
    try:
        ast.parse(code)
    except SyntaxError:
        return "text"
    return "python"


# --- settings and errors ---


def settings() -> str:
    """Every declared setting, but the addresses for which one rule stands."""
    own = [s for s in compose.every_setting() if not s.name.endswith("_BASE_URL")]
    rows = [
        (
            ", ".join(f"`{name}`" for name in (s.name, *s.aliases)),
            s.help + (" (secret: never shown)" if s.secret else ""),
            f"`{s.default}`" if s.default else "",
        )
        for s in own
    ]
    return table("setting | meaning | default", rows)


def errors() -> str:
    """Every error in the code that has a code and a remedy, by its code."""
    rows = sorted({each for each in every_error() if each[2]})
    return table(
        "code | what happened | what to do",
        ((f"`{code}`", message, remedy) for code, message, remedy in rows),
    )


def codes() -> str:
    """The module of the codes that are whole in the source, and of no single vendor."""
    words = {word for code, _, _ in every_error() for word in code.split(" / ")}
    found = sorted(word for word in words if re.fullmatch(r"[a-z][a-z0-9_]*", word))
    found = [code for code in found if not any(vendor in code for vendor in names())]
    lines = textwrap.fill(" ".join(f'"{code}",' for code in found), 96, break_long_words=False)
    text = CODES.read_text("utf-8")
    before, rest = text.partition("[\n")[0], text.partition("\n])")[2]
    return f"{before}[\n{textwrap.indent(lines, ' ' * 4)}\n]){rest}"


@cache
def every_error() -> list[tuple[str, str, str]]:
    """What `raised` finds in each function of the program, and what servers of models refuse."""
    found = []
    for code, words in tomllib.loads(REFUSALS.read_text("utf-8"))["refusals"].items():
        message, remedy = (re.sub(r"\{(\w+)\}", lambda m: m[1].upper(), text) for text in words)
        found.append((code, message, remedy))
    files = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    nodes = (node for path in files for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    made = (n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return [*found, *(error for function in made for error in raised(function))]


def raised(function: ast.AST) -> Iterator[tuple[str, str, str]]:
    """The errors that a function makes in words of its own: code, what happened, what to do."""
    made = (node for node in ast.walk(function) if isinstance(node, ast.Assign))
    known = {t.id: node.value for node in made for t in node.targets if isinstance(t, ast.Name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and RAISED.match(getattr(node.func, "id", "")):
            given = [known.get(getattr(arg, "id", ""), arg) for arg in node.args[:3]]
            code, message, remedy = [*map(text, given), "", "", ""][:3]
            if code and message:
                yield code, message, remedy


def text(node: ast.expr) -> str:
    """A string of the source, empty if it is none; capitals stand for what is filled in.

    The name that may have been meant (`near`) is there for some mistakes only.
    """
    match node:
        case ast.FormattedValue(value=ast.Name("near")) | ast.Name("near"):
            return ""
        case ast.FormattedValue(value=ast.Call(func=ast.Name("one_of")) as made):
            return text(made)
        case ast.Call(func=ast.Name("remedy_for"), args=[_, broken]):
            return text(broken)
        case ast.Call(func=ast.Name("one_of"), args=[_, known]):
            return f"Choose one of {text(ast.FormattedValue(known, -1))}."
        case ast.Constant(value=str() as value):
            return value
        case ast.JoinedStr():
            return "".join(text(value) for value in node.values)
        case ast.FormattedValue(value=value):
            names: list[str] = re.findall(r"[A-Za-z_]+", ast.unparse(value)) or ["..."]
            return names[-1].upper().strip("_")
        case ast.BinOp(left=left, right=right):
            return (text(left) or "...") + (text(right) or "...")
        case ast.IfExp(body=body, orelse=other):
            return " / ".join(filter(None, (text(body), text(other))))
    return ""


PARTS = {
    "cli": cli,
    "http": http,
    "search-http": search_http,
    "python": python,
    "settings": settings,
    "errors": errors,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What the public names say of themselves: what they are, their parameters, errors, an example."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, is_typeddict

import pytest

import searchloop
from searchloop import testing
from tests.docs.conftest import ROOT
from tests.tables import each_row

PAGES = sorted((ROOT / "docs").rglob("*.md"))
RUN = re.compile(r"^```py(?:thon)?\n(.*?)^```$", re.M | re.S)
PUBLIC = {
    **{name: getattr(searchloop, name) for name in searchloop.__all__},
    **{
        n: v
        for n, v in vars(testing).items()
        if n[0] != "_" and getattr(v, "__module__", "") == testing.__name__
    },
}
OURS = {n: v for n, v in PUBLIC.items() if getattr(v, "__module__", "").startswith("searchloop")}
FACES = ("Agent", "AsyncAgent", "Chat", "AsyncChat", "Stream", "AsyncStream", "Hooks", "Answer")
# Words of parameters that need no explanation of their own beside the sentence.
PLAIN = {"self", "question", "function", "log", "settings", "session_id", "value", "url", "schema"}


def examples(value: Any) -> Iterator[str]:
    """The indented blocks of a docstring, and those behind `>>>`."""
    for block in re.split(r"\n\s*\n", inspect.getdoc(value) or ""):
        lines = block.splitlines()
        if lines and all(line.startswith(("    ", ">>> ")) for line in lines):
            yield textwrap.dedent(block.replace(">>> ", ""))


def shown() -> set[str]:
    """The names in examples of the documents, which tests/docs/test_examples.py runs."""
    code = "\n".join(text for page in PAGES for text in RUN.findall(page.read_text("utf-8")))
    return set(re.findall(r"\w+", code))


def test_only_other_peoples_types_say_nothing() -> None:
    """Everything else that is public is an object of ours with a docstring."""
    assert set(PUBLIC) - set(OURS) <= {"Keys", "StreamEvent"}


@each_row("name", sorted(OURS))
def test_a_public_name_says_what_it_is(name: str) -> None:
    """In a docstring of its own, with an example there or in a document that is run."""
    said = OURS[name].__doc__ or ""
    assert len(said) > 20
    assert not said.startswith(f"{name}("), "made by dataclasses"
    assert [*examples(OURS[name])] or name in shown(), "no example anywhere"
    for example in examples(OURS[name]):
        compile(example, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def functions() -> Iterator[Any]:
    """Public functions, and the public words of the classes that people work with."""
    for name, value in sorted(OURS.items()):
        if inspect.isroutine(value):
            yield pytest.param(value, id=name)
        for word, method in inspect.getmembers(value) if name in FACES else []:
            if word[0] != "_" and inspect.isroutine(method):
                yield pytest.param(method, id=f"{name}.{word}")


@each_row("function", list(functions()))
def test_a_function_says_what_it_takes_and_raises(function: Any) -> None:
    """Each parameter is in the text or speaks for itself, and so are its errors."""
    said = inspect.getdoc(function) or ""
    assert said
    given = inspect.signature(function).parameters.values()
    named = {p.name for p in given if p.kind is not p.VAR_KEYWORD} - PLAIN
    told = set(re.findall(r"\w+", said)) | set(re.findall(r"\w+", " ".join(_family(function))))
    missing = {name for name in named if name not in told and name.rstrip("s") not in told}
    assert missing == set(), said
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    if any(isinstance(node, ast.Raise) and node.exc for node in ast.walk(tree)):
        assert re.search(r"[Rr]aise", said), "it raises and does not say so"


def _family(function: Any) -> Iterator[str]:
    """The word of the other face, and the class, which say it once for both."""
    owner = function.__qualname__.split(".")[0]
    for name in (owner, owner.removeprefix("_"), "Agent", "Chat", "Stream"):
        if "." in function.__qualname__ and name in OURS:
            yield inspect.getdoc(OURS[name]) or ""
            yield inspect.getdoc(getattr(OURS[name], function.__name__, None)) or ""


def test_options_are_explained_in_their_class() -> None:
    """Each key of the dictionaries of options stands in a docstring, of its own or its base."""
    for name, value in OURS.items():
        if is_typeddict(value):
            said = " ".join(OURS[n].__doc__ or "" for n in (name, "Usual", "AskOptions"))
            said += (ROOT / "docs" / "guides" / "library-use.md").read_text("utf-8")
            assert [key for key in value.__annotations__ if f"`{key}`" not in said] == [], name

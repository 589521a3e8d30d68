"""Measures the built-in model: `python -m bench.extractive --xquad DIR [--lang en]`.

`--xquad` is a folder of files in SQuAD's form whose names end with a language, `xquad.de.json`.
Every other article goes into a library. Two ways to ask: end to end, with the library as the only
engine, and the model's own part, with the right paragraph among ten others already read. In both,
questions on the articles that were left out should be refused.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from searchloop import Agent, AnswerError, Finished, Message, Request, Settings
from searchloop.agent.providers.builtin import Extractive
from searchloop.agent.settings import Environment
from searchloop.agent.types import ToolSpec
from searchloop.search_backend.library import Library

_QUOTE = re.compile("“([^”]*)”")
_OTHERS = 10
_SEARCH = (ToolSpec("web_search", "", {}),)
Ask = Callable[["Asked"], str]


class Asked(NamedTuple):
    """A question, its right answers, and the paragraph that holds them."""

    question: str
    answers: tuple[str, ...]
    paragraph: str


class Share(NamedTuple):
    """How many of the questions came out as wanted."""

    right: int
    every: int

    def __str__(self) -> str:
        return f"{self.right / max(1, self.every):7.1%}"


def articles(file: Path) -> list[list[Asked]]:
    """Reads the questions of each article."""
    return [
        [
            Asked(qa["question"], tuple(a["text"] for a in qa["answers"]), p["context"])
            for p in article["paragraphs"]
            for qa in p["qas"]
        ]
        for article in json.loads(file.read_text("utf-8"))["data"]
    ]


def _plain(text: str) -> str:
    return " ".join(text.translate(str.maketrans("“”", '""')).casefold().split())


def quoted(answer: str, wanted: Sequence[str]) -> bool:
    """Tells whether a right answer stands in the quoted sentences."""
    said = _plain("  ".join(_QUOTE.findall(answer)))
    return any(_plain(each) in said for each in wanted)


def measure(ask: Ask, kept: Sequence[Asked], left_out: Sequence[Asked]) -> tuple[Share, Share]:
    """Returns the share answered right, and the share refused of what cannot be answered."""
    right = sum(quoted(ask(each), each.answers) for each in kept)
    refused = sum(not _QUOTE.search(ask(each)) for each in left_out)
    return Share(right, len(kept)), Share(refused, len(left_out))


def end_to_end(home: Path, paragraphs: Sequence[str]) -> Iterator[Ask]:
    """Yields a way to ask through the whole product, with these paragraphs as the library."""
    folder = home / "paragraphs"
    folder.mkdir()
    for number, text in enumerate(paragraphs):
        (folder / f"{number:03}.txt").write_text(text, "utf-8")
    Library(home).add(folder)
    own = {"SEARCHLOOP_HOME": str(home), "SEARCH_ENGINES": "library"}
    with Agent(Settings.load(Environment({"flag": own}))) as agent:

        def ask(each: Asked) -> str:
            try:
                return agent.ask(each.question, model="builtin:extractive", search="local").text
            except AnswerError as error:  # it says that nothing was found
                return error.answer.text

        yield ask


def own_part(paragraphs: Sequence[str]) -> Ask:
    """Returns a way to ask the model alone, which has read the right paragraph and ten others."""
    draw = random.Random(1)

    def ask(each: Asked) -> str:
        pages = draw.sample([p for p in paragraphs if p != each.paragraph], _OTHERS)
        if each.paragraph in paragraphs:
            pages.insert(draw.randrange(_OTHERS + 1), each.paragraph)
        read = [
            Message("tool", p, tool_name="open_page", details={"n": n, "text": [0, len(p)]})
            for n, p in enumerate(pages, 1)
        ]
        request = Request(
            "extractive", (Message("user", each.question), *read), tools=_SEARCH, answer_now=True
        )
        return asyncio.run(_last(request))

    return ask


async def _last(request: Request) -> str:
    events = [event async for event in Extractive().stream(request)]
    assert isinstance(events[-1], Finished)
    return events[-1].message.content


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a line for each language and way to ask; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.extractive", description=__doc__)
    parser.add_argument("--xquad", type=Path, required=True)
    parser.add_argument("--lang", action="append", help="only this language, or several")
    parser.add_argument("--questions", type=int, default=600, help="of each kind, at the most")
    parser.add_argument("--own-part", action="store_true", help="leave out the way end to end")
    args = parser.parse_args(argv)
    print(f"{'':14} {'answered':>8} {'refused':>8} {'ms each':>8}")
    for file in sorted(args.xquad.glob("*.json")):
        lang = file.stem[-2:]
        if args.lang and lang not in args.lang:
            continue
        every = articles(file)
        kept, left_out = (_sample(every[start::2], args.questions) for start in (0, 1))
        paragraphs = list(dict.fromkeys(each.paragraph for one in every[::2] for each in one))
        _show(f"{lang} own part", own_part(paragraphs), kept, left_out)
        if not args.own_part:
            with tempfile.TemporaryDirectory() as home:
                for ask in end_to_end(Path(home), paragraphs):
                    _show(f"{lang} end to end", ask, kept, left_out)
    return 0


def _sample(kept: Sequence[list[Asked]], most: int) -> list[Asked]:
    every = [each for article in kept for each in article]
    return random.Random(2).sample(every, min(most, len(every)))


def _show(name: str, ask: Ask, kept: Sequence[Asked], left_out: Sequence[Asked]) -> None:
    begun = time.perf_counter()
    answered, refused = measure(ask, kept, left_out)
    each = 1000 * (time.perf_counter() - begun) / (len(kept) + len(left_out))
    print(f"{name:14} {answered} {refused} {each:8.1f}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())

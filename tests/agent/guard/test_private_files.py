"""Files of the user are private alike: attached, of a project, of the workspace, of a private tool.

Each source of private words meets each way out. And whatever a tool returns, the next request
holds no more of it than the cut of all results.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from mcp import types as mcp

from searchloop.agent.guard.egress import Egress, Exposure, Secrets, forms
from searchloop.agent.log.events import result_message
from searchloop.agent.mcp.calls import result_of
from searchloop.agent.run.question.files import NewFile, add_files, checked_files
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import Tool, tool
from searchloop.agent.tools.backend import LocalBackend
from searchloop.agent.tools.dispatcher import SHOWN
from searchloop.agent.tools.workspace import Workspace
from searchloop.agent.types import Capabilities, Message, ToolResult, ToolSpec
from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.settings import SearchSettings
from tests.agent.scripted import (
    House,
    Scripted,
    SearchApp,
    Step,
    call,
    calls,
    found,
    open_house,
    page,
    says,
)
from tests.tables import each_row

LETTER = "Dear Maud, the surgeon will remove the growth on Thursday at Lindhaug, in ward 7."
PIECE = "surgeon will remove the growth on Thursday"
MET = "https://tide.example/"


def of_the_user(words: str) -> Tool:
    """A tool whose results are the user's own data."""

    async def run(arguments: Any, context: Any) -> str:
        return words

    spec = ToolSpec("diary", "Read the diary.", {"type": "object", "properties": {}})
    return Tool(spec, run, origin="ours", private=True)


class Reader(SearchApp):
    """A search backend that reads documents as the real one does."""

    def __init__(self, home: Path) -> None:
        super().__init__({"/api/web-search": found(MET), "/api/open-page": page("Tides.")})
        self._real = create_app(SearchSettings.from_mapping({}, home=home))

    def __call__(self, environ: Any, start: Any) -> Any:
        own = environ["PATH_INFO"] in ("/api/web-search", "/api/open-page", "/api/engines")
        return super().__call__(environ, start) if own else self._real(environ, start)


SOURCES = ("attached", "project", "workspace", "private tool")
WAYS = {
    "web_search": {"query": PIECE},
    "open_page": {"url": f"https://away.example/?q={PIECE.replace(' ', '+')}"},
    "send": {"text": PIECE},
}


@asynccontextmanager
async def beside(
    folder: Path, source: str, *steps: Step, can: Capabilities | None = None
) -> AsyncIterator[tuple[House, Scripted, dict[str, Any]]]:
    """A chat with the letter where `source` says, its model, and what goes with the question."""
    (work := folder / "work").mkdir()
    model, app = Scripted([*steps, says("So.")], can), Reader(folder)
    bring = [Workspace(folder / "home")]
    tools, letter = (of_the_user(LETTER), send), NewFile("letter.txt", LETTER.encode())
    async with open_house(folder, model, app=app, tools=tools, bring=bring) as house:
        if source == "project":
            project = house.log.projects.create("Health", {})
            files = await checked_files([letter], LocalBackend(app))
            add_files(house.log, project.id, files)
            house.log.update_session(house.session, {"project": project.id})
        if source == "workspace":
            (work / "letter.txt").write_text(LETTER, "utf-8")
            house.log.update_session(house.session, workspace=str(work))
        yield house, model, {"files": [letter]} if source == "attached" else {}


def first_step(source: str) -> list[Step]:
    """The step in which the model reads, where it has to."""
    reads = {"workspace": call("read_file", 9, path="letter.txt"), "private tool": call("diary", 9)}
    return [calls(reads[source])] if source in reads else []


@tool(effect="network")
async def send(text: str) -> str:
    """Send a text away."""
    return "sent"


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("untrusted", [False, True])
async def test_private_words_leave_when_the_user_says_so(
    tmp_path: Path, source: str, way: str, untrusted: bool
) -> None:
    """Each way out asks about each source; an approval that nobody gives lets nothing leave."""
    web = [calls(call("web_search", 8, query="tides"))] if untrusted else []
    steps = [*web, *first_step(source), calls(call(way, **WAYS[way]))]
    async with beside(tmp_path, source, *steps) as (house, model, given):
        await house.ask("Look.", search="local", approve="auto", **given)
        last = model.requests[-1].messages[-1]
        assert last.is_error, last.content
        asked = [e.data for e in house.log.read(house.session) if e.type == "approval_requested"]
        assert asked[-1]["why"]
        assert PIECE not in str(house.app.requests).replace("+", " ")


@pytest.mark.parametrize("source", SOURCES)
async def test_other_words_leave_as_before(tmp_path: Path, source: str) -> None:
    """A search for something else asks nobody while no text of others came."""
    steps = [*first_step(source), calls(call("web_search", query="tides"))]
    async with beside(tmp_path, source, *steps) as (house, _, given):
        await house.ask("Look.", search="local", approve="never", **given)
        assert ("/api/web-search", "tides") in [(p, b.get("query")) for p, b in house.app.requests]


@pytest.mark.parametrize("source", ["attached", "project", "private tool"])
async def test_a_provider_does_not_search_unseen_beside_files(tmp_path: Path, source: str) -> None:
    """Once such words are in the chat the next request holds no search of the provider; from the
    next question on the search is ours, and the user is told.
    """
    can = Capabilities(native_search=True, tools_with_native_search=True)
    steps = [*first_step(source), says("So.")]
    async with beside(tmp_path, source, *steps, can=can) as (house, model, given):
        await house.ask("Look.", search="auto", **given)
        done = await house.ask("And now?")
        own = [request.native_search is None for request in model.requests]
        assert own == [source != "private tool", True, True][-len(own) :]
        assert "web_search" in {spec.name for spec in model.requests[-1].tools}
        assert done.data["search_path"].startswith("local")
        codes = [e.data["code"] for e in house.log.read(house.session) if e.type == "notice"]
        assert set(codes) == {"native_search_held_back"}


LONG = "A line of some words.\n" * 140_000  # 3 MB


def mcp_answer(kind: str) -> mcp.CallToolResult:
    """A result of a server in one of the forms that the protocol has."""
    if kind == "structured":
        return mcp.CallToolResult(content=[], structured_content={"rows": [LONG]})
    if kind == "resource":
        inner = mcp.TextResourceContents(uri="file:///a", text=LONG)
        return mcp.CallToolResult(content=[mcp.EmbeddedResource(type="resource", resource=inner)])
    words, count = (LONG, 1) if kind == "text" else (LONG[:9000], 900)
    return mcp.CallToolResult(content=[mcp.TextContent(type="text", text=words)] * count)


def returning(kind: str) -> Tool:
    """A tool that returns far too much in this form."""

    async def run(arguments: Any, context: Any) -> Any:
        if kind == "own":
            return LONG
        if kind == "raises":
            raise ValueError(LONG)
        return result_of(context.call_id, "huge", mcp_answer(kind), server="a", tool="huge")

    spec = ToolSpec("huge", "Returns.", {"type": "object", "properties": {}})
    return Tool(spec, run, origin="ours", untrusted=kind not in ("own", "raises"))


KINDS = ("own", "raises", "text", "structured", "resource", "many")
BUILT_IN = ("read_file", "search_files", "list_directory", "open_page", "web_search")


def sizes(model: Scripted) -> list[int]:
    """The characters of the results in each request."""
    said = lambda m: len(m.content) if isinstance(m, Message) and m.role == "tool" else 0  # noqa: E731
    return [sum(map(said, request.messages)) for request in model.requests]


@pytest.mark.parametrize("kind", [*KINDS, *BUILT_IN])
async def test_each_source_of_results_is_bounded(tmp_path: Path, kind: str) -> None:
    """The next requests grow by one cut result; where it was cut, `read_more` has the rest."""
    (folder := tmp_path / "work").mkdir()
    for n in range(200):
        (folder / f"{'n' * 200}{n}.txt").write_text(LONG if n < 3 else "", "utf-8")
    arguments: dict[str, Any] = {
        "read_file": {"path": f"{'n' * 200}0.txt", "lines": 2000},
        "search_files": {"text": "some words"},
        "open_page": {"url": MET, "max_length": 40_000},
        "web_search": {"query": "tides"},
    }.get(kind, {})
    name = kind if kind in BUILT_IN else "huge"
    rows = found(*(f"https://a{n}.example/" for n in range(10)))
    app = SearchApp({"/api/web-search": rows, "/api/open-page": page(LONG)})
    more = [calls(call("read_more", 2, call_id="call-1", offset=SHOWN))] if name == "huge" else []
    model = Scripted([calls(call(name, **arguments)), *more, says("So.")])
    bring = [Workspace(tmp_path / "home")]
    async with open_house(tmp_path, model, app=app, tools=[returning(kind)], bring=bring) as house:
        house.log.update_session(house.session, workspace=str(folder))
        await house.ask(f"Read {MET}", search="local", mode="ask")
        offered = ["read_more" in {spec.name for spec in r.tools} for r in model.requests]
        most = 41_000 if kind == "open_page" else SHOWN + 1000
        assert sizes(model)[1] <= most
        if name == "huge":
            assert offered[:2] == [False, True]
            assert f"offset {SHOWN}" in model.requests[1].messages[-1].content
            assert sizes(model)[1] < sizes(model)[2] <= 2 * most
            assert model.requests[2].messages[-1].content.count("Read on with") == 1


IN_SCRIPTS = {
    "zh": ("亲爱的茉德，外科医生将于周四在林德切除肿瘤。", "外科医生将于周四在林德切除"),
    "ja": ("モードへ、外科医は木曜日にここで腫瘍を切除します。", "外科医は木曜日にここで腫瘍"),
    "th": ("ศัลยแพทย์จะตัดเนื้องอกในวันพฤหัสบดีที่โรงพยาบาล", "จะตัดเนื้องอกในวันพฤหัสบดี"),
    "ko": (
        "외과 의사가 목요일에 병원에서 종양을 제거한다.",
        "의사가 목요일에 병원에서 종양을 제거한다",
    ),
    "ru": ("Хирург удалит опухоль в четверг в Линдхауге.", "удалит опухоль в четверг в Линдхауге"),
    "ar": ("سيزيل الجراح الورم يوم الخميس في المستشفى.", "الجراح الورم يوم الخميس في المستشفى"),
}


@pytest.mark.parametrize("lang", IN_SCRIPTS)
@pytest.mark.parametrize("dress", ["{}", "meaning of {} please", "{} ?"])
def test_words_of_every_script_are_known_again(lang: str, dress: str) -> None:
    """Scripts without spaces have no words to count: there a run of signs is a piece."""
    letter, piece = IN_SCRIPTS[lang]
    exposure = Exposure([result_message(ToolResult("c", "t", letter, details={"private": True}))])
    exposure.catch_up(lambda url: None)
    assert exposure.private_piece(forms(dress.format(piece)))
    assert exposure.private_piece(forms(" ".join(piece)))
    assert not exposure.private_piece(forms(IN_SCRIPTS["ru" if lang != "ru" else "zh"][1]))
    assert not exposure.private_piece(forms(piece[:6]))


def known_again(private: str, **arguments: str) -> bool:
    """Whether a call with these arguments would send out a piece of this text."""
    messages = [result_message(ToolResult("c", "t", private, details={"private": True}))]
    egress = Egress(lambda: Secrets({}), SourceTable(), Exposure(messages))
    finding = egress.look(send, arguments)
    return finding is not None and finding.code == "private_text"


DRESSES: Mapping[str, Callable[[str], str]] = {
    "plain": str,
    "without breaks": lambda s: s.replace(" ", "\xa0"),
    "soft hyphens": lambda s: re.sub(r"(?<=\w\w)(?=\w\w)", "\xad", s),
    "hyphens at line ends": lambda s: re.sub(r"(?<=\w\w\w)(?=\w\w\w)", "-\n", s, count=3),
    "accents apart": lambda s: normalize("NFD", s.replace("o", "ö")),
    "accents": lambda s: s.replace("o", "ö"),
    "wide": lambda s: "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in s),
    "ligatures": lambda s: s.replace("ff", "ﬀ").replace("fi", "ﬁ"),
    "underlines": lambda s: s.replace(" ", "_"),
    "camel": lambda s: s.title().replace(" ", ""),
    "numbered": lambda s: " ".join(f"{n}. {word}" for n, word in enumerate(s.split())),
    "marked up": lambda s: "".join(f"<b>{sign}</b>" for sign in s),
    "escaped": lambda s: "".join(f"\\\\u{ord(sign):04x}" if sign == " " else sign for sign in s),
    "letters": lambda s: " ".join(s),
}


@each_row(
    ("kept", "sent"),
    [*itertools.product(list(DRESSES)[:-5], ["plain"]), *itertools.product(["plain"], DRESSES)],
)
def test_private_words_are_known_in_any_dress(kept: str, sent: str) -> None:
    """However a file or a query writes them, alone or spread over the arguments of a call."""
    letter, piece = DRESSES[kept](LETTER), DRESSES[sent](PIECE)
    assert known_again(letter, text=f"look up {piece}")
    assert known_again(letter, text=piece[:14], to=piece[14:28], subject=piece[28:])
    assert not known_again(letter, text=DRESSES[sent]("the tides of Lindhaug on a Thursday"))
    assert known_again(letter, **dict.fromkeys(PIECE.split(), ""))


@each_row(
    ("kept", "sent", "known"),
    [
        ("Pay to DE89 3704 0044 0532 0130 00.", "DE89370400440532013000", True),
        ("Pay to DE89370400440532013000.", "DE89 3704 0044 0532 0130 00", True),
        ("Card 4111 1111 1111 1234", "whose is 4111-1111-1111-1234", True),
        ("Call +49 151 2345 6789.", "owner of 0151 23456789", True),
        ("SSN 078-05-1120", "078051120", True),
        ("Ask maud.berg@nord.example soon", "who is maud.berg@nord.example", True),
        ("Ward ticket QX-77-8812-LM, code Zx81b7Q4", "zx81b7q4", True),
        ("Ward ticket QX-77-8812-LM", "ticket qx 77 8812 lm", True),
        ("Call +47 2222 3333", "call ٠٠٤٧٢٢٢٢٣٣٣٣", True),
        ("Ring Maud: 22 22 33 33", "whose is 22223333", True),
        ("Call (212) 555-0123", "who has 212-555-0123", True),
        ("From 12.05.2024 on", "rate on 12.05.2024", False),
        ("In 2019/2020 and 2021-2024", "season 2019/2020", False),
        ("It has 10 000 000 inhabitants", "a town of 10000000", False),
        ("The COVID-19 figures", "covid 19 figures", False),
        ("Paid on 2024-05-12 in Bergen", "rate of the krone on 2024-05-12", False),
        ("It has 12,500,000 inhabitants", "a town of 12,500,000", False),
        ("See https://tide.example/ for more", "tide.example", False),
    ],
)
def test_what_names_somebody_is_a_piece(kept: str, sent: str, known: bool) -> None:
    """A long number, an address of mail or an id is one, in any grouping; a date is none."""
    assert known_again(kept, text=sent) is known

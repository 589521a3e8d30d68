"""The terminal and the exports speak the reader's language, in the page's own words."""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.log.events import Event, event_of
from searchloop.agent.log.session import Session
from searchloop.agent.types import NOTHING, Limits, Meter
from searchloop.cli.main import main
from searchloop.cli.show import as_text
from searchloop.render.export import html, markdown
from searchloop.render.words import LANGUAGES, of_environment, words_of
from tests.six_verdicts import PLACES, answer
from tests.source_tree import ROOT, modules, strings
from tests.tables import each_row
from tests.web.house import allowed, living, make_house, request
from tests.web.words.test_catalogues import CATALOGUES

LOCALES = {"en": "C.UTF-8", "de": "de_AT.UTF-8", "zh": "zh_CN.UTF-8"}
SESSION = Session("a", "Tides", "m:x", "ask", "off", "off", None, 0.0, 0.0, 1, False)
FILE = {"name": "dial.png", "media_type": "image/png", "size": 2_000, "digest": "0" * 64}
SIX = [verdict for _, verdict, *_ in PLACES]


def events(**more: Any) -> list[Event]:
    """A question with a file, and an answer with each verdict."""
    said = {**answer(), "reason": "stop", "search_path": "local:library", "model": "m", **more}
    said |= {"answer": said["text"], "usage": {**NOTHING.as_dict(), "seconds": 1.5, "pages": 2}}
    asked = Event(1, "user_message", {"text": "When?", "attachments": [FILE]}, 0.0)
    return [asked, event_of(2, "run_finished", said, 0.0)]


def terminal(said: list[Event]) -> str:
    """What `searchloop ask` prints of these, on both streams."""
    shown = io.StringIO()
    with redirect_stdout(shown), redirect_stderr(shown):
        as_text(iter(said))
    return shown.getvalue()


@pytest.fixture(params=sorted(CATALOGUES))
def language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each language there is, as that of the terminal."""
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", LOCALES[request.param])
    return str(request.param)


def surfaces(said: list[Event], language: str) -> dict[str, str]:
    """The terminal and the exports that people read."""
    written = {"md": markdown(SESSION, said, language), "html": html(SESSION, said, language)}
    return {"terminal": terminal(said), **written}


def test_the_languages_are_those_of_the_page() -> None:
    """A file in the folder of the page is a language here too."""
    assert set(LANGUAGES) == set(CATALOGUES) == set(LOCALES)


def test_each_verdict_is_told_in_the_words_of_the_page(language: str) -> None:
    """Six verdicts on three surfaces; no sentence of another language is there. So are the words
    around: what is nearest, who searched, what was attached, the places of a source."""
    words, shown = CATALOGUES[language], surfaces(events(), language)
    near, path, attached = FRAMES[language]
    for name, text in shown.items():
        assert [v for v in SIX if words[f"verdict.{v}"] not in text] == [], name
        assert near in text, name
        assert path in text, name
        assert attached in text or name == "terminal"
        for other in CATALOGUES.keys() - {language}:
            foreign = [v for v in SIX if CATALOGUES[other][f"verdict.{v}"] in text]
            assert foreign == [], (name, other)
    assert words["sources.title"] in shown["terminal"]
    first = words["mark.some"].format(n=1, of=2, words=words["verdict.misquoted"])
    first += words["list.clauses"] + words["by.words"]
    assert f"      {first}\n" in shown["terminal"]
    assert words["marks.title"] in shown["html"]
    assert f'<html lang="{words["language.tag"]}" dir="ltr">' in shown["html"]


FRAMES = {
    "en": ("nearest there: “The flood is at one.”", "local: Library", "Attached: dial.png"),
    "de": ("dem am nächsten kommt: „The flood is at one.“", "lokal: Bibliothek", "Angehängt: d"),
    "zh": ("其中最接近的内容：“The flood is at one.”", "本地：资料库", "附件：dial.png"),
}


ENDS = ["cancelled", "limit", "incomplete"]


def test_an_end_is_told_in_one_language(language: str) -> None:
    """How a run ended; why it failed is told to its owner and not on a shared page."""
    words = CATALOGUES[language]
    for reason in ENDS:
        for name, text in surfaces(events(reason=reason), language).items():
            assert words[f"end.{reason}"] in text or name == "terminal", (name, reason)
    assert words["end.limit"] in terminal(events(reason="limit", limit="the step limit of 3"))
    error = {"code": "unreachable", "message": "Nothing answers at http://a.ex.", "remedy": "Wait."}
    shown = surfaces(events(reason="error", error=error), language)
    why = words["error.unreachable.1"].replace("{origin}", "http://a.ex")
    assert why in shown["terminal"]
    assert f"{words['end.error']}{'。' if language == 'zh' else '.'}" in shown["md"]
    assert why.replace("_", "\\_") in shown["md"]
    assert words["end.error"] in shown["html"]
    assert "a.ex" not in shown["html"]
    [asked, _] = events()
    assert f"*{words['end.unfinished']}*" in markdown(SESSION, [asked], language)


def test_what_a_run_does_is_told_in_one_language(language: str) -> None:
    """Searches, pages, tools and notices while the answer comes: the page's own sentences."""
    words = words_of(language)
    failed = {"engine": "ddg", "status": "error", "error": {"code": "network", "message": "No."}}
    used = {"engine": "library", "status": "ok", "error": None}
    note = {"code": "stored_copy", "message": "This is a stored copy of 2026-01-02."}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("search_started", {"query": "tides"}),
        ("search_finished", {"status": "ok", "results": 2, "attempts": [failed, used]}),
        ("search_finished", {"status": "error", "results": 0, "attempts": [], "error": "No."}),
        ("page_opened", {"url": "https://a.example/", "status": "ok", "notes": [note]}),
        ("page_opened", {"url": "https://b.example/", "status": "error", "error": "Gone."}),
        ("servers_awaited", {"servers": ["files"]}),
        ("notice", {"code": "prompt_small", "message": "It may be cut."}),
        ("tool_call", {"name": "write_file", "arguments": {}}),
        (
            "tool_result",
            {"details": {"kind": "file_change", "path": "a.txt", "new": True}, "content": ""},
        ),
    ]
    shown = terminal([Event(n, *step, 0.0) for n, step in enumerate(steps)])
    assert shown.splitlines() == [
        f"  {words.say('step.searching', query='tides')}",
        f"  {words.say('step.results', n=2)}"
        f" · {words.say('attempt', engine='DuckDuckGo', why=words['attempt.network'])}"
        f" · {words.say('step.used', engine=words['name.library'])}",
        f"  {words['step.searchfailed']}: No.",
        f"  {words.say('step.read', host='https://a.example/')}",
        f"    {words.say('error.stored_copy.2', day='2026-01-02')}",
        f"  {words.say('step.notread', host='https://b.example/')} · Gone.",
        f"  {words.say('step.connecting', names='files')}",
        f"  {words['error.prompt_small'] if language != 'en' else 'It may be cut.'}",
        f"  {words.say('step.tool', name='write_file')}",
        f"  {words.say('step.filemade', path='a.txt')}",
    ]


def test_words_need_no_escape_in_markup(language: str) -> None:
    """What a shared page puts around the chat is text without signs of markup."""
    heads = ("verdict.", "mark", "source", "table.", "untitled", "language.", "end.", "enter.")
    texts = {k: v for k, v in CATALOGUES[language].items() if k.startswith(heads)}
    assert len(texts) > 30
    assert [key for key, text in texts.items() if set('<>&"') & set(str(text))] == []


def test_chinese_stands_close_to_chinese() -> None:
    """A value of the language itself has no blanks around it, any other keeps them."""
    assert words_of("zh").say("step.used", engine="资料库") == "使用了资料库"
    assert words_of("zh").say("step.used", engine="DuckDuckGo") == "使用了 DuckDuckGo"
    assert words_of("en").say("step.results", n=1) == "1 result"
    assert words_of("zh").say("step.results", n=1) == words_of("zh").say(
        "step.results", n=7
    ).replace("7", "1")


def test_a_check_is_told_in_one_language(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`searchloop check` says the verdict's name, its words, and the reason."""
    monkeypatch.setenv("SEARCHLOOP_HOME", str(tmp_path / "home"))
    (tmp_path / "page.md").write_text("The bridge was opened in 1931.\n", "utf-8")
    words = CATALOGUES[language]
    for claim, verdict, reason in [
        ("The bridge was opened in 1932.", "contradicted", "reason.number"),
        ("Nobody likes to swim in winter.", "unclear", "reason.nothing"),
    ]:
        with redirect_stdout(io.StringIO()) as shown:
            assert main(["check", claim, str(tmp_path / "page.md")]) == 0
        stop = "。" if language == "zh" else ". "
        first = f"{verdict}: {words[f'verdict.{verdict}']}{stop}{words[reason]}"
        assert shown.getvalue().splitlines()[0] == first


def test_every_reason_and_limit_has_words() -> None:
    """What a check or a limit says in English is found in the catalogue, and nothing else is."""
    said = {
        str(node.value)
        for module in modules("agent")
        if module.name.startswith("agent.verdicts.")
        for node in strings(module)
        if re.fullmatch(r"[A-Z][^\n`]* [^\n`]*\.", str(node.value))
    }
    known = {text for key, text in CATALOGUES["en"].items() if key.startswith("reason.")}
    cut = "{reason} Only its first {n} characters were compared."
    assert known - {cut} == said
    source = (ROOT / "searchloop/auditing/run.py").read_text("utf-8")
    told = {t for key, t in CATALOGUES["en"].items() if key.startswith("audit.why.")}
    parts = (part.strip() for text in told for part in re.split(r"{\w+}", text))
    assert [part for part in parts if part not in source] == []
    german = words_of("de")
    whole = german.worded(
        "The claim is empty. Only its first 9 characters were compared.", "reason."
    )
    assert whole == "Die Behauptung ist leer. Verglichen wurden nur ihre ersten 9 Zeichen."
    limits = Limits(steps=0, searches=0, pages=0, tokens=0, seconds=0, cost_usd=0)
    for name in ("steps", "searches", "pages", "tokens", "seconds", "cost_usd"):
        rest = {each: None for each in limits._fields if each != name}
        reached = Meter(Limits(**{**rest, name: 0})).reached()  # type: ignore[arg-type]
        assert reached
        told = german.worded(reached, "limit.")
        assert re.fullmatch("die .*grenze von 0.*", told)
    kinds = tomllib.loads((ROOT / "search_backend/search/kinds.toml").read_text("utf-8"))["kind"]
    for kind in kinds.values():
        asked = f"Also asked: a (looks like {kind['looks']}), brave (x)."
        why = german[f"why.looks like {kind['looks']}"]
        assert german.worded(asked, "error.") == f"Auch gefragt: a ({why}), Brave (x)."


@each_row(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "de"),
        ({"LANG": "de"}, "de"),
        ({"LANG": "zh_TW.Big5"}, "zh"),
        ({"LANG": "de_DE@euro"}, "de"),
        ({"LANG": "fr_FR.UTF-8"}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "POSIX"}, "en"),
        ({"LANG": "de_DE", "LC_MESSAGES": "zh_CN"}, "zh"),
        ({"LANG": "de_DE", "LC_MESSAGES": "zh_CN", "LC_ALL": "en_GB"}, "en"),
        ({"LANG": "de_DE", "LC_CTYPE": "zh_CN"}, "de"),
        ({"LANG": "de_DE", "LC_ALL": ""}, "de"),
        ({"LANG": "en_GB", "LANGUAGE": "fr:zh:de"}, "zh"),
        ({"LANGUAGE": "de"}, "de"),
        ({"LANG": "C", "LANGUAGE": "de"}, "en"),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "../../etc"}, "en"),
    ],
)
def test_a_terminal_names_its_language_as_for_gettext(
    environment: Mapping[str, str], language: str
) -> None:
    """The first variable that is set counts; LANGUAGE is a list; C is English whatever it says."""
    assert of_environment(environment) == language


REQUESTS = [
    ("", {}, "en"),
    ("", {"accept-language": "de-AT,en;q=0.8"}, "de"),
    ("", {"accept-language": "en;q=0.3, zh-TW;q=0.9"}, "zh"),
    ("", {"accept-language": "de;q=0, fr, en;q=0.1"}, "en"),
    ("", {"accept-language": "fr, *;q=0.5"}, "en"),
    ("", {"accept-language": ";;,=,\t"}, "en"),
    ("&lang=zh-CN", {"accept-language": "de"}, "zh"),
    ("&lang=xx", {"accept-language": "ZH-hant-TW"}, "zh"),
    ("&lang=../../x", {}, "en"),
]


async def test_a_server_answers_in_the_readers_language(tmp_path: Path) -> None:
    """The page names its own; another client's header counts; what programs read never changes."""
    house = make_house(tmp_path)
    async with living(house) as app:
        made = await request(app, "POST", "/api/sessions", allowed(), {})
        asked, ended = events()
        known = [(event.type, dict(event.data)) for event in (asked, ended)]
        house.log.append(made.data["id"], known)
        where = f"/api/sessions/{made.data['id']}/export?format="
        for query, headers, language in REQUESTS:
            words = CATALOGUES[language]["verdict.contradicted"]
            for form in ("md", "html", "md&turn=1"):
                target = where + form + query
                shown = await request(app, "GET", target, allowed(**headers))
                assert (shown.status, words in shown.body.decode()) == (200, True), target
            read = [
                (await request(app, "GET", where + form + query, allowed(**headers))).body
                for form in ("json", "trace")
            ]
            assert all(b"contradicted" in body for body in read)
            assert not any(words.encode() in body for body in read)

"""ZIM archives: searched and read without a network; what is missing or broken is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchloop.search_backend.api.app import create_app, make_pages
from searchloop.search_backend.engines import Access, Engine, find_engines
from searchloop.search_backend.engines import zim as engine
from searchloop.search_backend.library import Library
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import EngineError, Query, SearchResult
from tests.search_backend.search.zim_archives import write


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of four articles."""
    return write(tmp_path_factory.mktemp("zim") / "Tea Works_2026.zim")


def settings(home: Path, files: object, **more: str) -> SearchSettings:
    """Offline, with these archives."""
    mapping = {"ZIM_FILES": str(files), "SEARCHLOOP_OFFLINE": "1", **more}
    return SearchSettings.from_mapping(mapping, home)


def search(own: SearchSettings, text: str, count: int = 8) -> list[SearchResult]:
    """What the engine finds by itself."""
    return engine.search(Query(text, count), Access(own.keys, Library(own.home, dict)))


def test_found_and_read_without_a_network(tmp_path: Path, archive: Path) -> None:
    """A question in words gives articles with the passage that answers, and each can be opened."""
    client = create_app(settings(tmp_path, archive)).test_client()
    answer = client.post("/api/web-search", json={"query": "Where is sencha steamed?"}).json
    assert (answer["engine"], answer["status"]) == ("zim", "ok")
    best = answer["results"][0]
    assert (best["title"], best["url"]) == ("Green tea", "zim://tea-works_2026/Green_tea")
    assert "Sencha is a green tea of Japan" in best["snippet"]
    page = client.post("/api/open-page", json={"url": best["url"], "find": "sencha"}).json
    assert (page["status"], page["origin"]) == ("ok", "library")
    assert "steamed at harvest" in page["content"]


def test_links_inside_an_archive_can_be_followed(tmp_path: Path, archive: Path) -> None:
    """They are addresses of the archive; links to the web stay what they are."""
    pages = make_pages(settings(tmp_path, archive), Library(tmp_path, dict))
    view = pages.open_page("zim://tea-works_2026/Tea")
    own = "zim://tea-works_2026/"
    assert view.page.links == (f"{own}Green_tea", f"{own}Milk", "https://tea.example/x")
    assert ".invalid" not in str(view.as_json())
    assert pages.open_page(view.page.links[1]).content.endswith("Milk is white.")


@pytest.mark.parametrize("path", ["Chai", "", "Tea#History"])
def test_other_addresses_of_an_article(tmp_path: Path, archive: Path, path: str) -> None:
    """A redirect, the main page and a fragment lead to the article itself; blanks, signs and
    letters of other languages survive the way through a URL."""
    own = settings(tmp_path, archive)
    pages = make_pages(own, Library(tmp_path, dict))
    page = pages.open_page(f"zim://tea-works_2026/{path}").page
    assert (page.status, page.final_url) == ("ok", "zim://tea-works_2026/Tea")
    (hit,) = search(own, "leather")
    assert hit.url == "zim://tea-works_2026/B%C3%BCcher%20&%20mehr"
    assert "bound in leather" in pages.open_page(hit.url).content


def test_several_archives_take_turns(tmp_path: Path, archive: Path) -> None:
    """A folder is all its archives; one without an index of its text is searched by titles."""
    write(tmp_path / "b.zim", {"Kettle": ("Kettle", "<p>For tea and leaves.</p>")})
    write(tmp_path / "c.zim", {"Tea_cup": ("Tea cup", "<p>Round.</p>")}, index=False)
    own = settings(tmp_path, f"{archive}, {tmp_path}")
    urls = [hit.url for hit in search(own, "tea", 3)]
    assert urls[1:] == ["zim://b/Kettle", "zim://c/Tea_cup"]
    assert urls[0].startswith("zim://tea-works_2026/")


def test_articles_of_any_make_have_an_extract(tmp_path: Path) -> None:
    """What answers a question stands behind it; what is no text has none."""
    articles = {
        "Q": ("Question", "<div>How long is oolong <b>brewed</b>?</div><div>Four minutes.</div>"),
        "Old.pdf": ("Oolong, a scan", "%PDF oolong"),
    }
    own = settings(tmp_path, write(tmp_path / "x.zim", articles))
    found = {hit.title: hit.snippet for hit in search(own, "oolong")}
    assert found["Question"] == "# Question How long is oolong brewed? Four minutes."
    assert found.get("Oolong, a scan", "") == ""


def test_all_words_before_some(tmp_path: Path, archive: Path) -> None:
    """When no article has all words, those with most of them are found; words alone are too few."""
    own = settings(tmp_path, archive)
    assert search(own, "green leaves fermented zebra")[0].title == "Green tea"
    assert search(own, "zebra giraffe elephant milk") == []
    assert search(own, "?!") == []


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.zim", None, "cannot be read: No such file"),
        ("bad.zim", b"no archive at all" * 99, "cannot be read (Invalid magic number)"),
        ("short.zim", b"", "cannot be read ("),
    ],
)
def test_a_file_that_is_no_archive_is_named(
    tmp_path: Path, archive: Path, name: str, content: bytes | None, words: str
) -> None:
    """Searching and opening both say which file, and what to do."""
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content or archive.read_bytes()[:900])
    own = settings(tmp_path, f"{archive},{file}")
    with pytest.raises(EngineError) as failure:
        search(own, "tea")
    assert words in failure.value.message
    assert name in failure.value.message
    assert failure.value.remedy
    client = create_app(own).test_client()
    page = client.post("/api/open-page", json={"url": "zim://tea/Tea"}).json
    assert (page["status"], words in page["error"]["message"]) == ("error", True)
    answer = client.post("/api/web-search", json={"query": "tea"}).json
    (attempt,) = [a for a in answer["attempts"] if a["engine"] == "zim"]
    assert words in attempt["error"]["message"]


@pytest.mark.parametrize("url", ["zim://nope/a", "zim://tea-works_2026/Nope", "zim://", "zim:///x"])
def test_an_address_without_a_document(tmp_path: Path, archive: Path, url: str) -> None:
    """It is an error of the page, with a sentence."""
    pages = make_pages(settings(tmp_path, archive), Library(tmp_path, dict))
    error = pages.open_page(url).page.error
    assert error is not None
    assert (error.code, error.remedy) == ("not_found", "Search again for the document.")


def test_domain_rules_leave_archives_out(tmp_path: Path, archive: Path) -> None:
    """An article of an archive is on no domain: an allow list keeps it out, found or opened."""
    client = create_app(settings(tmp_path, archive)).test_client()
    rules = {"allowed_domains": ["example.org"]}
    found = client.post("/api/web-search", json={"query": "tea", **rules}).json
    assert found["results"] == []
    page = client.post("/api/open-page", json={"url": "zim://tea-works_2026/Tea", **rules}).json
    assert page["error"]["code"] == "refused_domain"


def test_the_engine_is_listed(tmp_path: Path, archive: Path) -> None:
    """Ready with a file, offline too, else it names the setting; without the package the remedy is
    the command."""

    def row(own: SearchSettings, **engines: Any) -> dict[str, Any]:
        rows = Chain(own, Library(tmp_path, dict), engines or None).describe()["engines"]
        return dict(next(row for row in rows if row["name"] == "zim"))

    ready, bare = row(settings(tmp_path, archive)), row(settings(tmp_path, ""))
    assert (ready["available"], ready["remote"], ready["position"]) == (True, False, 2)
    assert (bare["available"], bare["missing"], bare["position"]) == (False, ["ZIM_FILES"], None)
    assert [e.name for e in find_engines().values() if e.package] == ["zim"]
    absent = Engine("zim", "ZIM", engine.search, remote=False, package="no_such_zim")
    lacking = row(SearchSettings(tmp_path, ("zim",)), zim=absent)
    assert lacking["problem"]["remedy"] == "Install it: pip install 'searchloop[zim]'."

"""With the web search down and no key, questions of seven kinds reach official sites."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from bench import sites
from searchloop.search_backend.search.router import choose
from searchloop.search_backend.types import Query


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[sites.Asked, sites.Reach]]:
    """What becomes of each question where modelled sites answer."""
    known = sites.questions()
    answers = sites.model(known, tmp_path_factory.mktemp("home"))
    return [(one, sites.judge(one, a)) for one, a in zip(known, answers, strict=True)]


def test_there_are_thirty_questions_of_each_of_seven_kinds() -> None:
    """No question stands there twice."""
    known = sites.questions()
    assert {*Counter(one.kind for one in known).values()} == {30}
    assert len({one.question for one in known}) == 210
    assert {site for one in known for site in one.sites} <= set(sites.SITES)


def test_most_questions_reach_a_site_that_knows(
    reached: list[tuple[sites.Asked, sites.Reach]],
) -> None:
    """One that has an authoritative page is asked, and by words that find it: at least 70 % of each
    kind. The pages are modelled; bench/sites.py says how, and how the real ones are measured."""
    for kind in {one.kind for one, _ in reached}:
        mine = [reach for one, reach in reached if one.kind == kind]
        assert sum(reach.found for reach in mine) >= 0.7 * 30, kind
        assert sum(reach.asked for reach in mine) >= 0.9 * 30, kind


def test_questions_that_have_no_page_in_the_file_reach_a_fitting_site() -> None:
    """At least 80 % of all, and half of each kind; one that fits none stays with the chain (an
    encyclopedia may be asked beside it)."""
    fits = defaultdict[str, list[bool]](list)
    for kind, question, names in sites.rows(sites.ROUTED):
        wanted = {*names.split(",")}
        asked = {choice.engine.name for choice in choose(Query(question), sites.SITES.values())}
        fits[kind].append(asked <= {"wikipedia"} if kind == "none" else bool(asked & wanted))
    shares = {kind: sum(each) / len(each) for kind, each in fits.items()}
    assert len(shares) == 9
    assert min(shares.values()) >= 0.5, shares
    assert sum(shares.values()) / 9 >= 0.8, shares

"""Perplexity's search API, which LiteLLM uses for every engine: POST /v1/search.

`query` may be a list of up to five texts, which are searched at once. Their results are one flat
list, as the official client and LiteLLM read it: the best of each first, each page once.
An option without a counterpart here is accepted and named in `not_applied`.

Spec: https://docs.perplexity.ai/api-reference/search-post, https://docs.litellm.ai/docs/search
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, zip_longest
from typing import Any

from searchloop.search_backend.other_apis import Contract, Route, Shape, Values, answered
from searchloop.search_backend.types import TIME_WORDS, Problem, SearchAnswer, SearchBackendError

RESULTS, MOST_QUERIES = 10, 5
_TIME = {"hour": "d", **{word: letter for letter, word in TIME_WORDS.items()}}
_WITHOUT_COUNTERPART = (
    *("search_after_date_filter", "search_before_date_filter", "last_updated_after_filter"),
    *("last_updated_before_filter", "search_mode"),
)


def _answer(values: Values, service: Contract) -> dict[str, Any]:
    given = values.get("query")
    queries = given if isinstance(given, list) else [given]
    if not 1 <= len(queries) <= MOST_QUERIES:
        what = f"query lists more than {MOST_QUERIES} texts, or none."
        raise SearchBackendError("bad_request", what, "Shorten it.")
    options, ignored = _options(values)
    asked = [{"query": query, **options} for query in queries]
    with ThreadPoolExecutor(len(asked)) as pool:
        answers = list(pool.map(service.search, asked))
    if all(answer.status not in ("ok", "empty") for answer in answers):
        answered(answers[0])
    by_rank = chain.from_iterable(zip_longest(*(_rows(answer) for answer in answers)))
    rows = {row["url"]: row for row in reversed([row for row in by_rank if row])}
    shape: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "object": "search",
        "results": list(rows.values())[::-1],
    }
    missed = {name for answer in answers for name in answer.not_applied} | set(ignored)
    if missed:
        shape["not_applied"] = sorted(missed)
    return shape


def _options(values: Values) -> tuple[dict[str, Any], list[str]]:
    """Returns the options of our contract, and the names of those it has no counterpart for."""
    count = values.get("max_results")
    options: dict[str, Any] = {"max_results": RESULTS if count is None else count}
    options["country"] = values.get("country") or None
    domains = values.get("search_domain_filter")
    if isinstance(domains, list) and all(isinstance(one, str) for one in domains):
        options["allowed_domains"] = [one for one in domains if one[:1] != "-"]
        options["blocked_domains"] = [one[1:] for one in domains if one[:1] == "-"]
    else:
        options["allowed_domains"] = domains  # refused in our own words, unless it is null
    recency = values.get("search_recency_filter")
    options["time_range"] = _TIME.get(recency, recency) if isinstance(recency, str) else recency
    ignored = [name for name in _WITHOUT_COUNTERPART if values.get(name) not in (None, "web")]
    languages = values.get("search_language_filter")
    if isinstance(languages, list) and len(languages) == 1:
        options["language"] = languages[0]
    elif languages:
        ignored.append("search_language_filter")
    return options, ignored


def _rows(answer: SearchAnswer) -> list[dict[str, Any]]:
    return [
        {
            "title": result.title,
            "url": result.url,
            "snippet": result.snippet,
            "date": result.published,
            "last_updated": None,
        }
        for result in answer.results
    ]


def _error(status: int, problem: Problem) -> dict[str, Any]:
    message = f"{problem.message} {problem.remedy}".strip()
    return {"error": {"message": message, "type": problem.code, "code": status}}


_SEARCH = "Search, as Perplexity and LiteLLM are asked"
SHAPE = Shape((Route("/v1/search", ("POST",), _SEARCH, _answer),), _error)

"""Tavily: search made for models, by credits; a basic search costs one.

https://docs.tavily.com/documentation/api-reference/endpoint/search
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, post
from searchloop.search_backend.plugin.answers import base, checked, results, rows
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Tavily"
BASE = "https://api.tavily.com"
MOST = 20
# 402 is nobody's but the standard's; the other two are this engine's own for plan and budget.
QUOTA = (402, 432, 433)
SETTINGS = (
    Setting("TAVILY_API_KEY", "Key of Tavily", secret=True),
    Setting("TAVILY_BASE_URL", "Another server of the Tavily API", BASE),
)
RANGES = {"d": "day", "w": "week", "m": "month", "y": "year"}

# The names by which it knows countries, after their codes; no other one can be asked for.
_COUNTRIES = """
ad andorra, ae united arab emirates, af afghanistan, al albania, am armenia, ao angola, ar
argentina, at austria, au australia, az azerbaijan, ba bosnia and herzegovina, bb barbados,
bd bangladesh, be belgium, bf burkina faso, bg bulgaria, bh bahrain, bi burundi, bj benin,
bn brunei, bo bolivia, br brazil, bs bahamas, bt bhutan, bw botswana, by belarus, bz belize,
ca canada, cf central african republic, cg congo, ch switzerland, cl chile, cm cameroon, cn
china, co colombia, cr costa rica, cu cuba, cv cape verde, cy cyprus, cz czech republic, de
germany, dj djibouti, dk denmark, do dominican republic, dz algeria, ec ecuador, ee estonia,
eg egypt, er eritrea, es spain, et ethiopia, fi finland, fj fiji, fr france, ga gabon, gb
united kingdom, ge georgia, gh ghana, gm gambia, gn guinea, gq equatorial guinea, gr greece,
gt guatemala, hn honduras, hr croatia, ht haiti, hu hungary, id indonesia, ie ireland, il
israel, in india, iq iraq, ir iran, is iceland, it italy, jm jamaica, jo jordan, jp japan,
ke kenya, kg kyrgyzstan, kh cambodia, km comoros, kp north korea, kr south korea, kw kuwait,
kz kazakhstan, lb lebanon, li liechtenstein, lk sri lanka, lr liberia, ls lesotho, lt
lithuania, lu luxembourg, lv latvia, ly libya, ma morocco, mc monaco, md moldova, me
montenegro, mg madagascar, mk north macedonia, ml mali, mm myanmar, mn mongolia, mr
mauritania, mt malta, mu mauritius, mv maldives, mw malawi, mx mexico, my malaysia, mz
mozambique, na namibia, ne niger, ng nigeria, ni nicaragua, nl netherlands, no norway, np
nepal, nz new zealand, om oman, pa panama, pe peru, pg papua new guinea, ph philippines, pk
pakistan, pl poland, pt portugal, py paraguay, qa qatar, ro romania, rs serbia, ru russia,
rw rwanda, sa saudi arabia, sd sudan, se sweden, sg singapore, si slovenia, sk slovakia, sn
senegal, so somalia, ss south sudan, sv el salvador, sy syria, td chad, tg togo, th
thailand, tj tajikistan, tm turkmenistan, tn tunisia, tr turkey, tt trinidad and tobago, tw
taiwan, tz tanzania, ua ukraine, ug uganda, us united states, uy uruguay, uz uzbekistan, ve
venezuela, vn vietnam, ye yemen, za south africa, zm zambia, zw zimbabwe
"""


@cache
def _countries() -> Mapping[str, str]:
    pairs = " ".join(_COUNTRIES.split()).split(", ")
    return {pair[:2]: pair[3:] for pair in pairs}


def _country(query: Query) -> str | None:
    return _countries().get((query.country or "").lower())


def request(query: Query, keys: Keys) -> HttpRequest:
    """A basic search: the depth is said aloud, or the engine may choose the dearer one."""
    body: dict[str, Any] = {
        "query": query.text,
        "search_depth": "basic",
        "max_results": min(query.max_results, MOST),
    }
    if query.time_range:
        body["time_range"] = RANGES[query.time_range]
    if country := _country(query):
        body["country"] = country  # for its general topic, which is what it takes by itself
    if query.allowed_domains:
        body["include_domains"] = list(query.allowed_domains)
    if query.blocked_domains:
        body["exclude_domains"] = list(query.blocked_domains)
    url = base(keys, "TAVILY_BASE_URL", BASE) + "/search"
    return post(url, body, {"Authorization": f"Bearer {keys.get('TAVILY_API_KEY', '')}"})


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """results[]."""
    found = rows(checked(response, TITLE, QUOTA), "results", title=TITLE)
    return results(found, "tavily", TITLE, "url", "title", "content", "published_date")


ENGINE = Engine(
    "tavily",
    TITLE,
    needs=("TAVILY_API_KEY",),
    applies=frozenset({"domains", "time_range", "country"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    cannot=lambda query: frozenset() if _country(query) else frozenset({"country"}),
)

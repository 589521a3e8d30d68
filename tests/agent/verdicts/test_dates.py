"""Dates and times in every form are one value; another one takes the tick or is accused."""

from __future__ import annotations

import pytest

from searchloop.agent.verdicts.check import check
from searchloop.agent.verdicts.page import Page

# Two sentences about a bridge, and forms of 3 May 1912, of its parts, and of other dates.
LANGUAGES = {
    "en": (
        "The bridge over the river was opened to traffic {} by the mayor of the town.",
        "The bridge was opened to traffic {} by the mayor.",
        "on 3 May 1912|on May 3, 1912|on the 3rd of May 1912|on May 3rd, 1912|on 1912-05-03"
        "|on Friday, 3 May 1912",
        "in May 1912|in 1912",
        "on 23 May 1912|on 3 March 1912|on 3 May 1921|on 5 March 1912|on 1912-03-05|in March 1912",
    ),
    "de": (
        "Die Brücke über den Fluss wurde {} vom Bürgermeister der Stadt eröffnet.",
        "Die Brücke wurde {} vom Bürgermeister eröffnet.",
        "am 3. Mai 1912|am 03.05.1912|am 3.5.1912|am Freitag, dem 3. Mai 1912|am 3. 5. 1912"
        "|am 1912-05-03",
        "im Mai 1912|1912",
        "am 23. Mai 1912|am 3. März 1912|am 3. Mai 1921|am 05.03.1912|am 23.05.1912",
    ),
    "fr": (
        "Le pont sur la rivière a été ouvert à la circulation {} par le maire de la ville.",
        "Le pont a été ouvert à la circulation {} par le maire.",
        "le 3 mai 1912|le 03/05/1912|le vendredi 3 mai 1912|le 3.5.1912",
        "en mai 1912|en 1912",
        "le 23 mai 1912|le 3 mars 1912|le 3 mai 1921|le 05/03/1912|en mars 1912",
    ),
    "es": (
        "El puente sobre el río fue abierto al tráfico {} por el alcalde de la ciudad.",
        "El puente fue abierto al tráfico {} por el alcalde.",
        "el 3 de mayo de 1912|el 03/05/1912|el 3/5/1912|el viernes 3 de mayo de 1912|el 3-5-1912",
        "en mayo de 1912|en 1912",
        "el 23 de mayo de 1912|el 3 de marzo de 1912|el 3 de mayo de 1921|el 05/03/1912",
    ),
    "it": (
        "Il ponte sul fiume fu aperto al traffico {} dal sindaco della città.",
        "Il ponte fu aperto al traffico {} dal sindaco.",
        "il 3 maggio 1912|il 03/05/1912",
        "nel maggio 1912",
        "il 3 marzo 1912|il 23 maggio 1912",
    ),
    "pt": (
        "A ponte sobre o rio foi aberta ao tráfego em {} pelo presidente da cidade.",
        "A ponte foi aberta ao tráfego em {} pelo presidente.",
        "3 de maio de 1912|03/05/1912",
        "maio de 1912",
        "3 de março de 1912|23 de maio de 1912",
    ),
    "zh": (
        "这座横跨河流的大桥于{}由市长宣布正式通车。",
        "大桥于{}由市长宣布正式通车。",
        "1912年5月3日|1912年05月03日|1912-05-03|1912/5/3|一九一二年五月三日|1912.5.3",
        "1912年5月|1912年",
        "1912年5月23日|1912年3月5日|1921年5月3日|1912-03-05",
    ),
    "ja": (
        "川に架かるこの橋は{}に市長によって開通が宣言された。",
        "この橋は{}に市長によって開通が宣言された。",
        "1912年5月3日|1912年05月03日|1912-05-03|1912/5/3",
        "1912年5月|1912年",
        "1912年5月23日|1912年3月5日|1921年5月3日",
    ),
}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_one_date_in_another_form_is_the_same_and_no_other_is(lang: str) -> None:
    """Each form of a date supports each other and its parts; no other day, month or year does."""
    source, claim, *forms = LANGUAGES[lang]
    same, parts, others = (form.split("|") for form in forms)
    for said in same:
        page = Page(source.format(said))
        for form in same + parts:
            verdict = check(claim.format(form), page)
            assert verdict.verdict in ("supported", "quoted"), (said, form, verdict)
        for form in others:
            verdict = check(claim.format(form), page)
            assert verdict.verdict in ("unclear", "contradicted"), (said, form, verdict)


def test_a_date_with_slashes_tells_no_month_in_english() -> None:
    """`03/05/1912` is May to one reader and March to another: neither is ticked nor accused."""
    source, claim, *_ = LANGUAGES["en"]
    page = Page(source.format("on 03/05/1912"))
    for form in ("on 3 May 1912", "on 5 March 1912"):
        assert check(claim.format(form), page).verdict == "unclear"
    verdict = check(claim.format("on 23 May 1912"), Page(source.format("on 05/23/1912")))
    assert verdict.verdict == "supported"


MONTHS = """
The station opened on 26 December 1970. | The station opened in May. | contradicted
The station opened on 26 May 1970. | The station opened in May. | supported
May is the driest month of the year. | The driest month of the year is May. | supported
The tablets may cause headaches at night. | The tablets cause headaches at night. | unclear
May cause headaches at night. | It may cause headaches at night. | supported
They sat from 3 to 5 May 1912 in Bern. | They sat until 5 May 1912 in Bern. | supported
It opened on 03/03/1912 in Bern. | It opened on 3 March 1912 in Bern. | supported
The station opened on 26 December 1970. It closed in May. | The station opened in May. | unclear
The station opened on 26 December 1970. It closed 1999-05-03. | The station opened in May. | unclear
"""
TIMES = """
The train leaves Basel at 3:45 pm. | The train leaves Basel at 15:45. | supported
The train leaves Basel at 15:45. | The train leaves Basel at 3.45 p.m. | supported
The train leaves Basel at 3:45 pm. | The train leaves Basel at 3:45. | supported
The train leaves Basel at 3:45 pm. | The train leaves Basel at 3:45 am. | contradicted
The train leaves Basel at 3:45. | The train leaves Basel at 3:45 pm. | unclear
The train leaves Basel at 12 pm. | The train leaves Basel at 12:00 am. | contradicted
Der Zug fährt um 15.45 Uhr ab. | Der Zug fährt um 15:45 Uhr ab. | supported
Der Zug fährt um 15 Uhr ab. | Der Zug fährt um 17 Uhr ab. | contradicted
Le train part de la gare à 15h45. | Le train part de la gare à 15:45. | supported
Arsenal beat Chelsea 3:1 at Wembley. | Arsenal beat Chelsea 1:3 at Wembley. | unclear
"""


@pytest.mark.parametrize("row", [*MONTHS.strip().splitlines(), *TIMES.strip().splitlines()])
def test_a_month_is_no_verb_and_a_time_is_one_value(row: str) -> None:
    """`May` is a month beside a day, a year or within a sentence; `15:45` is 3:45 pm."""
    page, claim, verdict = row.split(" | ")
    assert check(claim, Page(page)).verdict == verdict

"""Which verdict a claim gets: truth tables in six languages, and what no text may break."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.claims import TRUE, claims
from bench.own_pages import CASES, PAGES, Case
from searchloop.agent.verdicts.check import Verdict, check
from searchloop.agent.verdicts.page import Page
from searchloop.analysis.sentences import sentences
from tests.growth import check_growth
from tests.tables import cut, each_row

TICKED = ("supported", "quoted")


@each_row("case", CASES, ids=lambda case: f"{case.lang}: {case.claim[:60]}")
def test_a_claim_gets_the_verdict_it_deserves(case: Case) -> None:
    """True, reworded, negated, swapped, scaled, renamed, quoted, fabricated, translated."""
    verdict = check(case.claim, Page(PAGES[case.lang]))
    assert case.meets(verdict.verdict), verdict


@each_row("lang", PAGES)
def test_a_changed_sentence_loses_its_tick_and_a_true_one_keeps_it(lang: str) -> None:
    """Every change that the generators know, on every sentence of a page."""
    page = Page(PAGES[lang])
    spans = sentences(page.text)
    for number, span in enumerate(spans):
        after = page.text[slice(*spans[number + 1])] if number + 1 < len(spans) else ""
        for kind, claim in claims(page.text[slice(*span)], after, lang, number):
            verdict = check(claim, page)
            assert (verdict.verdict in TICKED) == (kind in TRUE), (kind, claim, verdict)
            assert kind not in TRUE or verdict.verdict != "contradicted"


def table(page: str, *rows: tuple[str, str]) -> None:
    """Holds each claim's verdict against the wanted one."""
    prepared = Page(page)
    for wanted, claim in rows:
        verdict = check(claim, prepared)
        assert verdict.verdict in wanted.split("|"), (claim, verdict)


def test_an_abbreviation_ends_no_sentence() -> None:
    """The whole claim is compared, not what stands behind `Dr.`."""
    page = "The test was run by Dr. Smith of the U.S. Navy in St. Louis. It failed twice."
    table(
        page,
        ("supported", "The test was run by Dr. Smith of the U.S. Navy in St. Louis."),
        ("unclear|contradicted", "The test was run by Dr. Jones of the U.S. Navy in St. Louis."),
    )


def test_a_quotation_may_leave_words_out_but_not_make_them_up() -> None:
    """An ellipsis in each of its forms, a word in brackets, and pieces that are only everywhere."""
    page = "He said: we will build a new bridge over the old river before the winter comes again."
    table(
        page,
        ("quoted", 'He said "we will build a new bridge … before the winter comes again".'),
        ("quoted", 'He said "we will build a new bridge [...] before the winter comes".'),
        ("quoted", 'He said "[they] will build a new bridge over the old river".'),
        ("misquoted", 'He said "we will build … the old bridge again".'),
        ("unclear|misquoted", 'He said "we … will … a … the … again".'),
    )


def test_the_words_around_a_true_quotation_are_held_to_the_source_too() -> None:
    """A real quotation carries no changed number, no denial, and no story of another place."""
    page = 'In May 1931 the mayor said "every bridge is a promise" to a crowd of 4,000 people.'
    table(
        page,
        ("quoted", 'The mayor said "every bridge is a promise".'),
        (
            "contradicted|unclear",
            'In May 1931 the mayor said "every bridge is a promise" to a crowd of 9,000 people.',
        ),
        (
            "unclear",
            'Asked in 1958, the mayor said again that "every bridge is a promise" to voters.',
        ),
        (
            "unclear",
            "Writing of the harbour tunnel in a book of memoirs that won two prizes, the engineer "
            'recalled that "every bridge is a promise", words her own daughter had embroidered.',
        ),
    )


def test_a_title_in_quotation_marks_is_a_name() -> None:
    """It is compared like one, and accuses nobody."""
    page = '"Should\'ve Been a Cowboy" is a song written and recorded by Toby Keith.'
    table(page, ("supported|unclear", "Toby Keith recorded 'Should Have Been a Cowboy.'"))


def test_numbers_are_values() -> None:
    """Digits, words, scales, units and signs that say the same or another thing."""
    table(
        "The dam holds 2.5 million litres. Twenty-five workers built it in 1,200 days.",
        ("supported", "The dam holds 2,500,000 litres."),
        ("supported", "25 workers built it in 1200 days."),
        ("contradicted|unclear", "The dam holds 2.5 billion litres."),
        ("contradicted|unclear", "The dam holds 2.5 million gallons."),
        ("contradicted|unclear", "Twenty-six workers built it in 1,200 days."),
        ("contradicted|unclear", "1,200 workers built it in 25 days."),
    )
    table(
        "The club paid £3 million for the striker. The fund lost EUR 40.5m. A seat costs $25k.",
        ("supported", "The club paid £3m for the striker."),
        ("supported", "The club paid £ 3 m for the striker."),
        ("supported", "The fund lost €40.5 million."),
        ("supported", "A seat costs $25,000."),
        ("contradicted", "The club paid £30m for the striker."),
        ("contradicted|unclear", "The club paid £3k for the striker."),
        ("contradicted|unclear", "The fund lost €40.5."),
    )
    table(
        "Denver erhielt eine 24-10 Führung, was das Spiel im Wesentlichen entschied.",
        ("supported", "Denver erhielt eine 24-10 Führung, was das Spiel entschied."),
        ("unclear", "Denver erhielt eine 10-24 Führung, was das Spiel im Wesentlichen entschied."),
    )
    table(
        "该大桥全长55公里，耗资1269亿元，历时九年建成。",
        ("supported", "该大桥全长五十五公里。"),
        ("supported", "该大桥耗资超过1200亿元。"),
        ("contradicted|unclear", "该大桥耗资超过1300亿元。"),
        ("contradicted|unclear", "该大桥全长五十公里。"),
    )


def test_a_cell_is_read_with_the_heads_of_its_row_and_column() -> None:
    """What prose would support a table supports; a cell of another row or column does not."""
    table(
        "| Plan | Price per month | Storage |\n|---|---|---|\n| Team | $29 | 500 GB |\n"
        "| Business | $79 | 2 TB |\n\n| | Longtail 3 | Longtail 3 Plus |\n|---|---|---|\n"
        "| Drive | 9-speed derailleur, chain | stepless hub gear, belt |\n\n"
        "| Bridge | Opened |\n|---|---|\n| Harbour Bridge | 1932 |\n| Tyne Bridge | 1928 |\n\n"
        "| Result | 2021 | 2020 |\n|---|---|---|\n| Operating margin | 7.9% | 9.6% |",
        ("supported", "The Team plan costs $29 per month."),
        ("supported", "The Business plan includes 2 TB of storage."),
        ("unclear|contradicted", "The Team plan costs $79 per month."),
        ("unclear|contradicted", "The Business plan includes 500 GB of storage."),
        ("unclear", "The Longtail 3 has a belt drive and a stepless hub gear."),
        ("supported", "The operating margin was 9.6% in 2020 and 7.9% in 2021."),
        ("unclear", "The operating margin was 7.9% in 2020 and 9.6% in 2021."),
        ("unclear|contradicted", "The Tyne Bridge opened in 1932."),
    )


def test_a_claim_about_somebody_is_held_to_a_sentence_about_them() -> None:
    """A name of the page beside what somebody else says or does there gets no tick."""
    table(
        "Chief executive Petra Holm blamed fuel prices for the loss. Lars Vik, who leads the "
        "union, called the plan a betrayal. “We waited too long to renew the fleet,” said the "
        "engineer Ines Castell. Jens Aldous listened to all of it.",
        ("supported", "Chief executive Petra Holm blamed fuel prices for the loss."),
        ("unclear", "Union leader Lars Vik blamed fuel prices for the loss."),
        ("unclear", "Jens Aldous said that they had waited too long to renew the fleet."),
    )
    table(
        "The old mill stands in the Garden of Weiss (Ogród Biały) and was used until 1944.",
        ("unclear", "The old mill stands in the Garden of Biały (Ogród Weiss), used until 1944."),
    )


@each_row(
    ("claim", "text", "verdict"),
    [
        ("工程历时18年。", "工程历时18个月。", "contradicted"),
        ("貸出は前年度の約1.7%になった。", "貸出は前年度の約1.7倍になった。", "unclear"),
        ("The dough rests for an hour and a half in the fridge.",
         "The dough rests for 90 minutes in the fridge.", "supported"),
        ("The terminal opened in 1999.", "The terminal cost 2 million euros and opened in 1998.",
         "contradicted"),
        ("Der Eintritt kostet 5 Euro.", "Der Eintritt ins Museum kostet 8 Euro.", "contradicted"),
        ("Der Eintritt kostet 5 Euro.",
         "Der Eintritt ins Museum kostet 8 Euro. Kinder zahlen 5 Euro.", "unclear"),
        ("The tunnel carries 41,300 vehicles per week.",
         "The tunnel, which carries about 41,300 vehicles a day, is old.", "unclear"),
    ],
)  # fmt: skip
def test_other_values_of_one_thing_exclude_each_other(claim: str, text: str, verdict: str) -> None:
    """Also where the claim leaves words out; not where the value stands elsewhere in the page."""
    assert check(claim, Page(text)).verdict == verdict


SESSION = "Die Sitzung des Stadtrats dauerte am Montag {} Stunden."
RESULT = "The company reported a result of {} million in 2020."
LEFT, BAKED = "About {} of the pupils left in 2019.", "Bake the bread at {} for an hour."
COLD, RING = "该市一月的平均气温是{}度。", "The ring was sold for {} at the fair."
EARNED, CARROTS = "The firm earned {} in May of that year.", "Carrots hold much Vitamin {}."


@each_row(
    ("sentence", "claim", "text", "verdict"),
    [
        (SESSION, "zweieinhalb", "2,5", "supported"),
        (SESSION, "zweieinhalb", "drei", "contradicted"),
        (RESULT, "-$40", "$40", "contradicted"),
        (LEFT, "5 to 8 percent", "5% to 8%", "supported"),
        (BAKED, "450 °F", "232 °C", "supported"),
        (BAKED, "450 °F", "450 °C", "contradicted"),
        (COLD, "零下五", "-5", "supported"),
        (COLD, "零下5", "-5", "supported"),
        (COLD, "零下五", "5", "contradicted"),
        (COLD, "负十五", "零下15", "supported"),
        (
            "El puente costó {} en total.",
            "3 millones de euros",
            "3 billones de euros",
            "contradicted",
        ),
        (RING, "£1,850", "1,850 pounds", "unclear"),  # of money or of mass
        (EARNED, "40 EUR and spent EUR 30", "EUR 40 and spent 30 euros", "supported"),
        (CARROTS, "A and little fat", "E and little fat", "unclear"),
    ],
)
def test_a_quantity_is_one_in_each_of_its_forms(
    sentence: str, claim: str, text: str, verdict: str
) -> None:
    """Words, signs, units and letters before or behind it; another one is told as another."""
    found = check(sentence.format(claim), Page(sentence.format(text)))
    assert found.verdict == verdict, found


def test_a_claim_may_say_some_of_it_in_other_words() -> None:
    """A long one more of it; other forms of a word stand for it, Korean endings too."""
    table(
        "The 1953 Act separated the financing of education for Africans from general state "
        "spending and linked it to direct tax paid by Africans themselves, with the result that "
        "far less was spent on black children than on white children.",
        ("supported", "The law, which separated the financing of schooling for Africans from "
         "general state expenditure, coupled it to direct tax paid by Africans themselves, so that "
         "far less money went to black children than to white children."),
    )  # fmt: skip
    table(
        "이 다리는 김민수가 설계하고 박지훈이 건설했다.",
        ("supported", "이 다리는 김민수가 설계했다."),
    )
    table(
        "In 2019, 71% of residents were satisfied with the bridge, up from 58% in 2012.",
        ("supported", "Satisfaction rose to 71% in 2019, up from 58% in 2012."),
        ("unclear", "Crime rose to 71% in 2019, up from 58% in 2012."),
    )


def test_sentences_that_stand_together_may_be_told_together() -> None:
    """Two facts of neighbouring sentences, and a claim of two sentences from afar."""
    filler = "Nothing else of note is known about that year in the valley. " * 3
    page = f"The mill opened in 1820. It burned down in 1874. {filler}The school opened in 1901."
    table(
        page,
        ("supported", "The mill opened in 1820 and burned down in 1874."),
        ("supported", "The mill opened in 1820. The school opened in 1901."),
        ("contradicted|unclear", "The mill opened in 1820. The school opened in 1902."),
    )


@each_row(
    ("claim", "page", "reason"),
    [
        ("", "Some text.", "The claim is empty."),
        ("[3]", "Some text.", "The claim is empty."),
        ("A claim of five words.", "", "The source holds no text."),
        ("A claim of five words.", " \n ", "The source holds no text."),
        (
            "A claim of five words.",
            "\x00\x01\x02PK\x03\x04" * 50,
            "The source is no readable text.",
        ),
        ("Ja.", "Ein Text steht hier.", "The claim is too short to be compared."),
        ("Elephants eat grass.", "Der Zug hält in Köln.", "Nothing like it stands in the source."),
    ],
)
def test_what_cannot_be_compared_is_unclear_and_says_why(
    claim: str, page: str, reason: str
) -> None:
    """Never an error, never an accusation."""
    assert check(claim, Page(page)) == Verdict("unclear", reason=reason)


def test_the_passage_is_the_sources_own_text() -> None:
    """With its range in code points, also where the verdict is unclear."""
    page = Page("🌉 A bridge. The tower is 90 metres high and was built by Ada Crane. The end.")
    for claim in ("The tower is 90 metres high.", "The tower is 95 metres high.", "The red tower"):
        verdict = check(claim, page)
        assert verdict.passage == page.text[verdict.start : verdict.end]
        assert "tower" in verdict.passage


def test_what_is_not_compared_gets_no_verdict_but_unclear() -> None:
    """The end of a claim that is too long, and what may stand in the rest of a page."""
    told = " ".join(f"Bridge number {n} has {n * n} lamps and a keeper." for n in range(60))
    page = Page(told)
    assert check(f"“{told}”", page).verdict == "unclear"
    for claim in (f"{told} It was destroyed in 1950.", f"“{told} It was destroyed by a fire.”"):
        assert check(claim, page).reason == "The claim is too long to be compared."
    unlike = "“the lamps were given away to a museum”"
    assert check(unlike, page).verdict == "misquoted"
    large = Page(f"{told} {'It is old. ' * 40_000} They said: {unlike}.")
    verdict = check(unlike, large)
    assert (verdict.verdict, large.cut) == ("unclear", True)
    assert "Only its first 400,000 characters were compared." in verdict.reason
    assert check(f"{told} It was old.", large).reason == "The claim is too long to be compared."
    assert check("Bridge number 9 has 82 lamps and a keeper.", large).verdict == "contradicted"


def test_a_page_built_to_be_slow_costs_its_length() -> None:
    """Repetition, missing stops, open brackets: nothing is quadratic."""
    slow = ["the same words again. ", "1,000 ", "not ", *'的三["|x `\n“', "a'", "\n- ", "|\n"]
    slow += ["a ", "a|\n-|\n", ". ", "](", "[a](", "[1]", "_*"]
    claims = ["the same words again and not 1,000", '"a a a a … a a a b" is said', "的三" * 99]

    def judged(text: str) -> None:
        page = Page(text)
        verdicts = {check(claim, page).verdict for claim in claims}
        assert verdicts <= {"unclear", "misquoted", *TICKED, "contradicted"}

    for piece in slow:
        check_growth(judged, piece * (40_000 // len(piece)))


def test_a_claim_takes_apart_only_the_sentences_near_it() -> None:
    """What a comparison costs is counted in sentences, not measured: a page may be long."""
    lines = (f"Lock {n} of the canal was built by crew {n % 7} in {1800 + n}." for n in range(900))
    page = Page(" ".join(lines))
    for claim in (
        "Lock 77 of the canal was built by crew 0 in 1877.",
        "Crew 3 dug lock 80 in 1880.",
    ):
        assert check(claim, page).verdict in ("supported", "unclear", "contradicted")
    made = vars(page)
    assert "words" not in made
    assert len(made["_tokens"]) <= 60


PIECES = cut("Rain fell by rose 0 0.0 -5 32 7 120 % ‰ °F °C km miles twice half over about .")
WORDS = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=400)
WORDS |= st.lists(st.sampled_from(PIECES), min_size=4, max_size=60).map(" ".join)


@given(WORDS, WORDS)
@settings(deadline=None)
def test_no_text_breaks_it(claim: str, text: str) -> None:
    """Whatever the two are: no error, a range inside the page, the same verdict twice."""
    page = Page(text)
    verdict = check(claim, page)
    assert verdict.passage == text[verdict.start : verdict.end]
    assert 0 <= verdict.start <= verdict.end <= len(text)
    assert check(claim, page) == verdict == check(claim, Page(text))


NOUNS = cut("harbour bridge river tower market school garden castle library station")
VERBS = cut("faces crosses guards supplies honours joins borders follows watches feeds")
PLACES = cut("Aldton Brome Carrick Dunmore Elwick Farley Gosford Hexham Ilford Jarrow")


@given(st.integers(min_value=0))
@settings(deadline=None)
def test_random_prose_is_recognised_and_its_denial_is_not(seed: int) -> None:
    """A sentence of the page is supported; with `never` put in it is not."""
    rng = random.Random(seed)
    prose = [
        (f"The old {rng.choice(NOUNS)} of {rng.choice(PLACES)}", rng.choice(VERBS),
         f"the {rng.choice(NOUNS)} near {rng.choice(PLACES)} since {rng.randrange(1200, 2000)}.")
        for _ in range(30)
    ]  # fmt: skip
    page = Page(" ".join(" ".join(parts) for parts in prose))
    subject, verb, rest = rng.choice(prose)
    assert check(f"{subject} {verb} {rest}", page).verdict == "supported"
    assert check(f"{subject} never {verb} {rest}", page).verdict in ("contradicted", "unclear")


ENGLISH = (
    "In his essay he rejected compulsory confession and encouraged private confession, since "
    '"every Christian is a confessor." He wrote that the practice of the old church was wrong, and '
    "that nobody may be forced to name what he has done."
)
VIETNAMESE = (
    "Trong bài tiểu luận, ông bác bỏ việc xưng tội bắt buộc và khuyến khích xưng tội riêng, vì "
    "“mọi Kitô hữu đều là người giải tội”. Ông viết rằng thực hành của giáo hội cũ là sai lầm, và "
    "không ai bị ép buộc phải kể ra những gì mình đã làm."
)
TURKISH = (
    "Denemesinde zorunlu günah çıkarmayı reddetti ve özel günah çıkarmayı teşvik etti, çünkü "
    '"her Hristiyan bir günah çıkartan kişidir." Eski kilisenin uygulaması yanlıştı, dedi.'
)
GREEK = "Στο δοκίμιό του απέρριψε την εξομολόγηση, γιατί «κάθε χριστιανός είναι εξομολογητής»."


@each_row("claim", [ENGLISH, VIETNAMESE, TURKISH, GREEK])
@each_row("page", [ENGLISH, VIETNAMESE, TURKISH, GREEK])
def test_a_translated_quotation_accuses_nobody(claim: str, page: str) -> None:
    """Also between languages of which one, or none, is known here."""
    verdict = check(claim, Page(page)).verdict
    assert verdict in (("quoted", "supported") if claim is page else ("unclear",))


def test_a_word_may_go_on_behind_a_link() -> None:
    """Pages write `[cat](address)s`; a quotation has the whole word."""
    page = Page("They say the old [cat](https://a.example/)s sat on the red mat. It [rained](#x) .")
    verdict = check("“the old cats sat on the red mat”", page)
    assert verdict.verdict == "quoted"
    assert verdict.passage.startswith("the old [cat](")
    assert check("“the old dogs sat on the red mat”", page).verdict == "misquoted"


@pytest.mark.parametrize(
    "claim", ["او می‌خواهد کتاب‌های خوب بخواند", "او میخواهد کتابهای خوب بخواند"]
)
def test_joiners_inside_words_do_not_count(claim: str) -> None:
    """Persian is written with and without them."""
    page = Page("او هر روز می‌نویسد. او می‌خواهد کتاب‌های خوب بخواند. او شاد است.")
    assert check(f"«{claim}»", page).verdict == "quoted"


@each_row(
    ("claim", "text", "verdict"),
    [
        ("“has 12 km2 in all”", "It has 12 km² in all.", "quoted"),
        ("“has 12 km² in all”", "It has 12 km^2 in all.", "quoted"),
        ("“it weighs 10^24 grams now”", "It weighs 1024 grams now.", "misquoted"),
        ("“it weighs 1024 grams now”", "It weighs 10^24 grams now.", "misquoted"),
        ("“the ticket costs 20 euros here”", "The ticket costs ~~20~~ 15 euros here.", "misquoted"),
        ("“the ticket costs 15 euros here”", "The ticket costs ~~20~~ 15 euros here.", "quoted"),
        ("“how it decides and what it asks”", "[How it decides](docs/a.md) and [what](b) it asks.",
         "quoted"),
        ("“see the old town of York first”", "See the [old town](a.html#x_(y)) of York first.",
         "quoted"),
        ("“the bridge was built in 1931”", "The bridge[a] was built in 1931[†].", "quoted"),
    ],
)  # fmt: skip
def test_marks_of_a_page_are_no_words(claim: str, text: str, verdict: str) -> None:
    """Powers, struck prices, addresses of links and notes, as pages are written for models."""
    assert check(claim, Page(text)).verdict == verdict


SPANISH = (
    "La comuna rural es la unidad básica de división territorial en Polonia. La empresa instalaba "
    "sistemas de iluminación basados en la luz de arco eléctrico que diseñó el propio Tesla. Se "
    "sospecha, pero no ha sido demostrado, que muchas clases de complejidad pueden ser desiguales."
)
ROMANIAN = (
    "El este și cel mai în vârstă fundaș care a jucat vreodată într-un meci la 39 de ani. Când "
    "vorbim despre probleme de calcul, o instanță a problemei este un șir peste un alfabet."
)


@pytest.mark.parametrize("sentence", SPANISH.split(". "))
def test_one_changed_word_of_a_quotation_is_told_in_a_language_near_others(sentence: str) -> None:
    """Spanish shares its function words with Portuguese, Italian and Romanian."""
    words = sentence.rstrip(".").split()
    for at in range(2, len(words) - 2):
        claim = f"«{' '.join((*words[:at], 'xilófono', *words[at + 1 :]))}»"
        assert check(claim, Page(SPANISH)).verdict == "misquoted", claim


@pytest.mark.parametrize(("claim", "page"), [(ROMANIAN, SPANISH), (SPANISH, ROMANIAN)])
def test_a_quotation_in_a_near_language_accuses_nobody(claim: str, page: str) -> None:
    """Letters tell Romanian from Spanish where small words do not."""
    for sentence in claim.split(". "):
        assert check(f"“{sentence}”", Page(page)).verdict == "unclear", sentence

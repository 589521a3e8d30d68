"""Sentences, numbers, languages and denials, apart from any verdict."""

from __future__ import annotations

import pytest

from searchloop.agent.verdicts.text import tokens
from searchloop.analysis.language import language
from searchloop.analysis.sentences import sentences
from tests.tables import each_row


@each_row(
    ("text", "parts"),
    [
        ("Dr. Smith came. He left.", ["Dr. Smith came.", "He left."]),
        ("It rose by 3.5 per cent. Then it fell.", ["It rose by 3.5 per cent.", "Then it fell."]),
        ("Am 3. Mai kam er. Er blieb.", ["Am 3. Mai kam er.", "Er blieb."]),
        ("z. B. die Brücke. Ende.", ["z. B. die Brücke.", "Ende."]),
        ("She said no. He left.", ["She said no.", "He left."]),
        ("See No. 5 of it. Done.", ["See No. 5 of it.", "Done."]),
        ("J. R. Ewing won. So what?", ["J. R. Ewing won.", "So what?"]),
        ("这是第一句。这是第二句！", ["这是第一句。", "这是第二句！"]),
        ("これは文です。「はい。」と言った。", ["これは文です。", "「はい。」", "と言った。"]),
        ("One\n\nTwo\n- three\n- four", ["One", "Two", "- three", "- four"]),
        ("", []),
    ],
)
def test_sentences_end_where_they_end(text: str, parts: list[str]) -> None:
    """Abbreviations, initials, ordinals and decimals end none; `。` and list items do."""
    assert [text[start:end] for start, end in sentences(text)] == parts


@each_row(
    ("lang", "text"),
    [
        ("en", "The bridge was opened by the mayor of the town."),
        ("de", "Die Brücke wurde von der Bürgermeisterin eröffnet."),
        ("es", "El puente fue inaugurado por la alcaldesa de la ciudad."),
        ("fr", "Le pont a été inauguré par la maire de la ville."),
        ("it", "Il ponte è stato aperto dal sindaco della città."),
        ("zh", "这座桥由市长宣布通车。"),
        ("ja", "橋は市長によって開通した。"),
        ("th", "สะพานถูกเปิดโดยนายกเทศมนตรี"),
        ("ru", "Мост был открыт мэром города."),
        ("", "Ada Crane 1931"),
    ],
)
def test_the_language_is_told_by_its_small_words(lang: str, text: str) -> None:
    """Or by its script; names alone tell nothing."""
    assert language(text) == lang


def test_a_negation_keeps_its_apostrophe_or_loses_it() -> None:
    """`n'est pas`, `isn’t`, `没有`, `ない` deny; `sin embargo` and `不仅` do not."""
    for text, lang, denies in (
        ("il n’est pas là", "fr", 2),
        ("it isn’t there", "en", 1),
        ("他没有来", "zh", 1),
        ("彼は来ない", "ja", 1),
        ("sin embargo vino", "es", 0),
        ("不仅如此", "zh", 0),
    ):
        assert sum(token.kind == "not" for token in tokens(text, lang)) == denies, text


@each_row(
    ("text", "lang", "value", "unit"),
    [
        ("81,365 cars", "en", 81365, ""),
        ("81 365 cars", "en", 81365, ""),
        ("81.365 Autos", "de", 81365, ""),
        ("1.5 km", "en", 1.5, "km"),
        ("1,5 km", "de", 1.5, "km"),
        ("1.234.567,8", "de", 1234567.8, ""),
        ("$5.3bn", "en", 5.3e9, "usd"),
        ("5,3 Milliarden Euro", "de", 5.3e9, "eur"),
        ("5 billion", "en", 5e9, ""),
        ("5 billones", "es", 5e12, ""),
        ("-5 °C", "en", -5, "celsius"),
        ("−5%", "en", -5, "%"),
        ("5 per cent", "en", 5, "%"),
        ("twenty-five years", "en", 25, "year"),
        ("dreiundzwanzig Tage", "de", 23, "day"),
        ("treinta y dos horas", "es", 32, "h"),
        ("14亿人", "zh", 1.4e9, ""),
        ("三百二十五人", "zh", 325, ""),
        ("530万ドル", "ja", 5.3e6, "usd"),
        ("是-5度", "zh", -5, "degree"),
    ],
)
def test_a_number_has_a_value_and_a_unit(text: str, lang: str, value: float, unit: str) -> None:
    """With its scale, its sign, in digits, words and CJK numerals."""
    found = [token.number for token in tokens(text, lang) if token.number]
    assert [(number.value, number.unit) for number in found][:1] == [(pytest.approx(value), unit)]


def test_the_end_of_a_span_of_years_is_a_year() -> None:
    """`2018–19` ends in 2019, `12-19` in 19."""
    for text, ends in (("in 2018–19", 2019), ("2018-2019", 2019), ("pages 12-19", 19)):
        last = tokens(text, "en")[-1].number
        assert last is not None
        assert last.value == ends


@pytest.mark.parametrize("text", ["pages 5-10", "1990–1995", "COVID-19", "2005年-2010年"])
def test_a_dash_is_no_minus(text: str) -> None:
    """In ranges and names."""
    assert all(token.number.value > 0 for token in tokens(text, "en") if token.number)

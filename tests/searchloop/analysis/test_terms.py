"""Terms of text in every script: what a query and a document have in common."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.analysis.language import language
from searchloop.analysis.terms import places, terms, wanted
from searchloop.analysis.terms import words as written
from tests.tables import each_row

LANGS = ("ar", "de", "en", "es", "ja", "ru", "th", "tr", "vi", "zh")


def found(query: str, text: str, langs: tuple[str, ...] = LANGS) -> bool:
    """Whether each word of the query stands in the text, in one of its forms."""
    held = set(terms(text))
    words = wanted(query, langs)
    return bool(words) and all(not held.isdisjoint(word) for word in words)


@each_row(
    ("query", "text"),
    [
        ("首都", "北京是中华人民共和国的首都。"),
        ("京", "東京は日本の首都です。"),
        ("富士山", "富士山は日本で一番高い山です。"),
        ("ﾌｼﾞｻﾝ", "フジサンは高い"),
        ("アメリカ 大統領", "アメリカの大統領"),
        ("เมืองหลวง", "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย"),
        ("ນະຄອນຫຼວງ", "ວຽງຈັນເປັນນະຄອນຫຼວງຂອງລາວ"),
        ("រាជធានី", "ភ្នំពេញជារាជធានីនៃកម្ពុជា"),
        ("မြို့တော်", "နေပြည်တော်သည် မြန်မာနိုင်ငံ၏ မြို့တော်"),
        ("대한민국 수도", "서울은 대한민국의 수도이다."),
        ("수도", "수도는 서울"),
        (unicodedata.normalize("NFD", "köln"), "Der Kölner Dom steht in Köln."),
        ("köln", unicodedata.normalize("NFD", "Köln liegt am Rhein.")),
        ("koln", "Der Dom zu Köln"),
        ("informacion", "La información es importante para la gente de España."),
        ("CAFÉ", "a café in Paris"),
        ("brücken", "Die Brücke über den Fluss ist alt und sie ist aus Stein."),
        ("مستشفي", "في المستشفى الكبير"),
        ("مدرسة", "البيت والمدرسة"),
        ("strasse", "Die Straße ist gesperrt."),
        ("meetings", "The meeting was long."),
        ("القاهرة", "القَاهِرَةُ عاصمة مصر"),
        ("مدرسه", "ذهب الولد إلى المدرسة"),
        ("בית", "הוא גר בבית"),
        ("столицы", "Москва - столица России"),
        ("елка", "Новогодняя ёлка"),
        ("παρθενωνας", "Ο Παρθενώνας χτίστηκε στην Αθήνα"),
        ("राजधानी", "दिल्ली भारत की राजधानी है"),
        ("viet nam", "Hà Nội là thủ đô của Việt Nam"),
        ("thủ đô", "Hà Nội là thủ đô của Việt Nam"),
        ("ISTANBUL", "İstanbul Türkiye'nin en kalabalık şehridir"),
        ("ISPARTA", "Isparta bir şehirdir ve güzel bir yerdir"),
        ("snake_case", "call `snake_case` here"),
        ("snake", "call `snake_case` here"),
        ("camelcase", "the camelCase name"),
        ("case", "the camelCase name"),
        ("HTTPServer", "an HTTPServer object"),
        ("1000", "about 1,000 people"),
        ("1,000", "about 1000 people"),
        ("1.000", "rund 1 000 Leute, oder 1.000 Leute"),
        ("1250.50", "a fee of 1,250.50 euros"),
        ("1,250.50", "Gebühr: 1.250,50 Euro"),
        ("1234567", "Rs. 12,34,567 in all"),
        ("3,5", "3.5 percent"),
        ("3.11.4", "Python 3.11.4 is out"),
        ("3.11", "since 3.11"),
        ("c++", "written in C++."),
        ("c#", "C#, not Java"),
        ("email", "by e-mail"),
        ("USA", "the U.S.A. and others"),
        ("l'homme", "les droits de l’homme"),
        ("IT", "the IT department"),
        ("the who", "The Who is a band"),
        ("٣٤٥", "345 pages"),
        ("Tokyo 東京", "東京 (Tokyo)"),
        ("ＡＢＣ", "abc"),
    ],
)
def test_a_query_finds_its_text(query: str, text: str) -> None:
    """In each script, however either is written, and whatever language either is taken for."""
    assert found(query, text, tuple({language(text), "en"}))
    assert found(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [("東京", "京都東山"), ("1000", "100 and 10,000"), ("c++", "c and d"), ("ma", "mb"), ("", "x")],
)
def test_a_query_does_not_find_another_text(query: str, text: str) -> None:
    """Neighbouring letters, whole numbers, whole identifiers."""
    assert not found(query, text)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Where is the capital of France?", ["capit", "franc"]),
        ("¿Cuál es la capital de Francia?", ["capital", "franci"]),
        ("What does the WHO say about IT?", ["who", "say", "it"]),
        ("首都は何ですか", ["首", "都", "首都", "都は"]),
        ("to be or not to be", ["to", "be", "or", "not"]),
    ],
)
def test_a_question_is_asked_without_its_function_words(question: str, words: list[str]) -> None:
    """Unless it has no others."""
    assert [word[0] for word in wanted(question)] == words


ANY = st.text(st.characters() | st.sampled_from("aé1,._-'’ 日本กาบ가́ं"), max_size=60)


@given(ANY)
def test_any_text_has_terms_and_places(text: str) -> None:
    """No text raises; each place is a range of the text, and both ways give the same terms."""
    flat = [term for _, _, held in places(text, "en") for term in held]
    assert sorted(set(flat)) == sorted(set(terms(text, "en")))
    assert all(0 <= start < end <= len(text) for start, end, _ in places(text, "en"))
    assert not any(" " in term or not term for term in flat)


@given(st.text("a1é,.#+-日\u00a0\u202f\u2009\u2028\x1c\n ", max_size=20))
def test_words_read_one_by_one_have_the_terms_of_the_text(text: str) -> None:
    """Also where a blank stands inside of a number."""
    assert terms(text, "en") == [term for word in written(text) for term in terms(word, "en")]


@given(ANY)
def test_a_text_finds_itself(text: str) -> None:
    """Whatever it holds, if it has any terms."""
    assert found(text, text) or not terms(text)

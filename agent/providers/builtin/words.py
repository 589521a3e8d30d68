"""What the built-in model says around its quotes, in the language of the question.

English, German and Chinese, and English for every other. The quotes stay as their sources have
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_OTHERS = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")  # kana and hangul: Japanese, Korean
_WORD = re.compile(r"[^\W\d_]+")
_IN_GERMAN = """
    aber als am auf aus bei bin bis bitte das dem den der durch ein eine einem einen einer eines er
    es für gibt haben hat heißt ich im ist kann kein keine kommt können macht mein mit muss nach
    nicht oder ohne seit sich sie sind soll sollte über um und uns unter viel viele vom von vor wann
    warum welche welchem welchen welcher welches wem wen wer werden weshalb wie wieso wieviel wird
    wo wohin woher wurde wurden zu zum zur zwischen
"""
_ELSEWHERE = """
    a an and are at by can do does for from had has have how is it its of on or that the their this
    to were what when where which who why will with you
    de het een van zijn niet voor hoe waarom welk en la le les des du que est y el los las og som
    är det att och på til
"""
_GERMAN, _FOREIGN = frozenset(_IN_GERMAN.split()), frozenset(_ELSEWHERE.split())


@dataclass(frozen=True, slots=True)
class Sentences:
    """What is said in one language; a list follows `found`, `search_failed` and `unread`."""

    unsearched: str
    found: str
    search_failed: str
    unread: str
    no_match: str
    nothing: str


SENTENCES: Mapping[str, Sentences] = {
    "en": Sentences(
        unsearched="I am not a language model: I answer with quotes from pages that a web search "
        "finds. Switch on web search, or choose a language model.",
        found="These passages match your question best:",
        search_failed="The web search failed, so there is nothing to quote.",
        unread="The search found pages, but none of them could be read.",
        no_match="No sentence of the pages that were read matches your question. Try other words.",
        nothing="The search found nothing that matches your question. Try other words.",
    ),
    "de": Sentences(
        unsearched="Ich bin kein Sprachmodell: Ich antworte mit Zitaten aus Seiten, die eine "
        "Websuche findet. Schalten Sie die Websuche ein oder wählen Sie ein Sprachmodell.",
        found="Diese Stellen passen am besten zu Ihrer Frage:",
        search_failed="Die Websuche ist fehlgeschlagen, also gibt es nichts zu zitieren.",
        unread="Die Suche hat Seiten gefunden, aber keine davon ließ sich lesen.",
        no_match="Kein Satz der gelesenen Seiten passt zu Ihrer Frage. Versuchen Sie andere "
        "Wörter.",
        nothing="Die Suche hat nichts gefunden, das zu Ihrer Frage passt. Versuchen Sie andere "
        "Wörter.",
    ),
    "zh": Sentences(
        unsearched="我不是语言模型：我只引用网络搜索找到的页面来回答。请打开网络搜索，或选择一个语言模型。",
        found="以下段落与你的问题最相符：",
        search_failed="网络搜索失败，因此没有可引用的内容。",
        unread="搜索找到了页面，但没有一个能够读取。",
        no_match="读取的页面中没有与你的问题相符的句子。请换个说法试试。",
        nothing="搜索没有找到与你的问题相符的内容。请换个说法试试。",
    ),
}


def sentences_for(question: str) -> Sentences:
    """The sentences in the question's language, told by its letters and its commonest words."""
    words = _WORD.findall(question.casefold())
    german, foreign = (sum(word in known for word in words) for known in (_GERMAN, _FOREIGN))
    if _HAN.search(question) and not _OTHERS.search(question) and not german and not foreign:
        return SENTENCES["zh"]
    first = next((word for word in words if word in _GERMAN | _FOREIGN), "")
    return SENTENCES["de" if german > foreign and first in _GERMAN else "en"]

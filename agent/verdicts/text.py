"""Cuts a text into sentences and tokens, with their places in code points; tables of words."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from searchloop.agent.verdicts import numbers
from searchloop.agent.verdicts.numbers import Number
from searchloop.analysis.words import NEGATIONS, STOPS

_PAIRS = """
increas/decreas increas/reduc increas/declin increas/drop increas/fell rais/lower rais/reduc
rais/cut rise/fall rose/fell grow/shrink grew/shrank gain/los gain/lost expand/contract
improv/worsen strengthen/weaken more/less more/fewer most/least higher/lower high/low
highest/lowest larger/smaller large/small largest/smallest bigger/smaller longer/shorter
long/short longest/shortest older/younger old/new oldest/newest oldest/youngest faster/slower
fast/slow fastest/slowest hotter/colder hot/cold warm/cold warmest/coldest better/worse best/worst
good/bad stronger/weaker strong/weak heavier/lighter heavy/light deeper/shallower cheaper/dearer
expensive/cheap rich/poor before/after first/last first/second earlier/later early/late
above/below up/down over/under inside/outside north/south east/west northern/southern
eastern/western northeast/southwest left/right win/lose won/lost winner/loser victory/defeat
beat/lost beat/defeated allow/forbid allow/prohibit allow/ban permit/prohibit legal/illegal
accept/reject includ/exclud positive/negative male/female man/woman men/women boy/girl
father/mother husband/wife son/daughter brother/sister king/queen always/never often/rarely
maximum/minimum enabl/disabl open/clos true/false safe/dangerous public/private buy/sell
bought/sold import/export begin/end began/ended start/stop start/end support/oppos agre/disagre
succe/fail major/minor majority/minority ancient/modern rural/urban internal/external alive/dead
birth/death born/died guilty/innocent everyone/nobody all/none many/few with/without cause/prevent
create/destroy attack/defend enter/leave arriv/depart teacher/student upper/lower plus/minus
push/pull giv/tak borrow/lend employer/employee north/east north/west south/east south/west
mehr/weniger meist/wenigst höher/niedriger hoch/niedrig höchst/niedrigst höchst/tiefst
größer/kleiner groß/klein größt/kleinst länger/kürzer lang/kurz älter/jünger alt/neu ältest/jüngst
schneller/langsamer schnell/langsam heiß/kalt wärmer/kälter warm/kalt besser/schlechter
stärker/schwächer stark/schwach vor/nach erst/letzt früher/später früh/spät über/unter
nördlich/südlich östlich/westlich norden/süden osten/westen link/recht gewann/verlor
gewinn/verlier gewonn/verlor steig/sink stieg/sank stieg/fiel steiger/senk erhöh/senk
erhöh/verringer zunahm/abnahm zunehm/abnehm wachs/schrumpf erlaub/verbiet erlaub/verbot immer/nie
mann/frau männer/frauen männlich/weiblich maximal/minimal mindestens/höchstens innerhalb/außerhalb
öffentlich/privat beginn/end mit/ohne alle/keine viel/wenig leicht/schwer más/menos mayor/menor
alto/bajo alta/baja grande/pequeño largo/corto antes/después primero/último primera/última
primer/último temprano/tarde encima/debajo norte/sur este/oeste aument/dismin aument/reduc
aument/redujo sub/baj crec/decrec gan/perd mejor/peor siempre/nunca hombre/mujer hombres/mujeres
máximo/mínimo dentro/fuera con/sin público/privado rápid/lent caliente/frí viejo/joven
positiv/negativ plus/moins supérieur/inférieur haut/bas haute/basse grand/petit grande/petite
long/court avant/après premier/dernier première/dernière tôt/tard dessus/dessous nord/sud
est/ouest augment/dimin augment/rédui augment/baiss croiss/décroiss mont/descend gagn/perd
meilleur/pire toujours/jamais homme/femme hommes/femmes avec/sans chaud/froid rapide/lent
vieux/jeune jeune/vieil ancien/nouv più/meno maggior/minor prima/dopo primo/ultimo mais/menos
maior/menor antes/depois primeiro/último meer/minder voor/na eerste/laatste больше/меньше
выше/ниже до/после первый/последний 增加/减少 增加/減少 增加/降低 增长/下降 上升/下降 提高/降低
提升/降低 上昇/下降 上昇/低下 増加/減少 扩大/缩小 加强/减弱 之前/之后 以前/以后 以前/以後
前に/後に 最大/最小 最高/最低 最多/最少 最长/最短 最初/最後 最早/最晚 大于/小于 高于/低于
多于/少于 早于/晚于 多く/少な 高い/低い 大き/小さ 長い/短い 东部/西部 南部/北部 東部/西部 北/南
允许/禁止 许可/禁止 許可/禁止 支持/反对 賛成/反対 胜利/失败 勝利/敗北 勝っ/負け 击败/败给
男性/女性 总是/从不 公开/私人 以上/以下 上游/下游
"""


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for pair in _PAIRS.split():
        one, other = pair.split("/")
        found[one].add(other)
        found[other].add(one)
    return {word: frozenset(others) for word, others in found.items()}


# A word, or its beginning, and the beginnings of the words that say the reverse.
OPPOSITES: Mapping[str, frozenset[str]] = _opposites()

# Behind these a full stop ends no sentence; single letters and `z.B.` are known by their shape.
_ABBREVIATIONS = """
adm al approx apr assn aug av bd bros bzw ca capt cf cmdr co col corp dec dept dez dr drs dña eds
eq est etc evtl feb ft geb gen ggf gov hab hon hrsg inc inkl jan jr jul jun lt ltd maj messrs mio
mlle mm mme mr mrd mrs ms mt nov núm oct okt pres prof pág rep rev sen sep sept sgt sog sr sra
srta st str tel ud uds univ usw vgl vs
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())


class Token(NamedTuple):
    """A word, a number, a negation, a function word, or one letter of a script without spaces.

    `key` is what two texts have in common: a stem, a value, two neighbouring letters.
    `word` is the whole word without case; `named` tells that it is written like a name, `capital`
    that it begins with a capital.
    """

    kind: str  # "word", "number", "not", "stop", "letter"
    key: str
    start: int
    end: int
    named: bool = False
    number: Number | None = None
    capital: bool = False
    word: str = ""


# ---- sentences ------------------------------------------------------------------------------

_END = re.compile(
    r"[。！？｡]+[」』”’）)]*"
    r"|(?P<dot>[.!?…]+[\"'”’»)\]*_]*)(?=\s|$)"
    r"|\n\s*\n|\n(?=\s*(?:[-*#|•]|\d+[.)]\s))|[।؟۔]+|(?<=[\u0e00-\u0e7f])\s*\n"
)
_LAST_WORD = re.compile(r"[^\s(\"'“„«\[]*\Z")
_LONGEST = 600  # characters of one sentence: what has no stops is cut here


def sentences(text: str) -> list[tuple[int, int]]:
    """Returns the half-open ranges of the sentences in order, without the white space between."""
    found: list[tuple[int, int]] = []
    start = 0
    for match in _END.finditer(text):
        if match["dot"] and not _ends(text, start, match):
            continue
        _add(found, text, start, match.end())
        start = match.end()
    _add(found, text, start, len(text))
    return found


def _add(found: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    while end - start > _LONGEST:
        cut = text.rfind(" ", start + _LONGEST // 2, start + _LONGEST) + 1 or start + _LONGEST
        found.append((start, cut))
        start = cut
    if start < end:
        found.append((start, end))


def _ends(text: str, start: int, match: re.Match[str]) -> bool:
    """Tells a full stop that ends a sentence from one of an abbreviation, initial or ordinal."""
    if match["dot"].rstrip("\"'”’»)]*_") != ".":
        return True
    place = match.start()
    word = _LAST_WORD.search(text[max(start, place - 12) : place])
    last = word[0].casefold().strip("*_") if word else ""
    behind = text[match.end() : match.end() + 3].lstrip(" \"'“„«(*_")[:1]
    if behind.islower():
        return False
    if last in _COUNTED:
        return not behind.isdigit()
    if last in ABBREVIATIONS or ("." in last and all(len(part) <= 2 for part in last.split("."))):
        return last in _LAST and behind.isupper()
    if len(last) == 1 and last.isalpha():  # an initial
        return False
    return not (last.isdigit() and len(last) <= 2 and _MONTH.match(text, match.end()))


_COUNTED = frozenset(
    ("no", "nos", "nr", "art", "fig", "figs", "vol", "abs", "op", "pp", "ch", "p", "s")
)
_LAST = frozenset(("etc", "inc", "ltd", "co", "corp", "al", "usw"))  # may also end a sentence
_MONTH = re.compile(r"\s(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahrh|Jh)")  # `3. Mai`


# ---- tokens ---------------------------------------------------------------------------------

SPACELESS = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0962\u0963\u200c\u200d"
PIECE = re.compile(
    r"(?P<number>\d{1,3}(?:[,.'’\u00a0\u202f\u2009 ]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)*)"
    rf"|(?P<run>[{SPACELESS}]+)"
    r"|(?P<elided>(?:[cdjlmnst]|qu|lorsqu|jusqu|puisqu|(?:d|n|s|a)ell|un)['’](?=[^\W\d_]))"
    rf"|(?P<word>[^\W\d_{SPACELESS}](?:[^\W_{SPACELESS}]|[{_MARKS}]|['’](?=[^\W\d_]))*)"
    r"|(?P<sign>°[CF]?|[%‰$€£¥℃℉])",
    re.IGNORECASE,
)
_BLANKED = re.compile(
    r"\[\d{1,4}(?:[,;]\s?\d{1,4})*\](?![(:])|(?<=[\w.,])\[(?:[a-z]|[†‡§¶]{1,3})\]"
    r"|(?<=\])\((?:[^()\s]|\([^()\s]*\)){1,2000}\)|\\(?=[*_\[\]#`])|~~(?=\S)[^~\n]{1,300}(?<=\S)~~",
    re.IGNORECASE,
)


def blanked(text: str) -> str:
    """Returns the text with spaces for notes, the addresses of links, and what is struck out."""
    return _BLANKED.sub(lambda match: " " * len(match[0]), text)


_LOOKS = {0x2019: "'", 0x200C: None, 0x200D: None}


@lru_cache(maxsize=65536)
def folded(word: str) -> str:
    """Returns the word without case, width, joiners and the look of its apostrophes.

    `n'` becomes `n`.
    """
    if not word.isascii():
        word = unicodedata.normalize("NFKC", word.translate(_LOOKS))
    return word.casefold().removesuffix("'")


_ENDINGS = {
    "en": re.compile(r"(?:(?<=[^aeious])(?:ings?|edly|ed|es|s|ly|e)|(?<=[aeiou])(?:ings?|s|d))\Z"),
    "de": re.compile(r"(?:ern|em|en|er|es|e|n|s|t)\Z"),
    "": re.compile(r"(?:[aeoiuáéíóú]?[sn]|[aeoiuéàáó]|es|er)\Z"),
}


@lru_cache(maxsize=65536)
def stem(word: str, lang: str = "") -> str:
    """Returns the word without its commonest endings; enough to compare, too little to read."""
    word = word.removesuffix("'s").rstrip("'")
    if len(word) < 5 or not word[0].isalpha():
        return word.removesuffix("s") if len(word) == 4 and lang in ("en", "") else word
    if lang in ("en", ""):
        word = re.sub("ies\\Z|ied\\Z", "y", word)
    short = _ENDINGS.get(lang, _ENDINGS["en" if not lang else ""]).sub("", word)
    if len(short) < 3:
        return word
    if len(short) > 4 and short[-1] == short[-2] and short[-1] not in "sl":
        short = short[:-1]
    return short.removesuffix("e") if len(short) > 4 else short


def kind_of(word: str, lang: str) -> str:
    """Returns "not", "stop" or "word" for a folded word; English where the language is unknown."""
    lang = lang if lang in NEGATIONS else "en"
    if word in NEGATIONS[lang] or (lang == "en" and word.endswith("n't")):
        return "not"
    return "stop" if word in STOPS[lang] else "word"


def tokens(text: str, lang: str, start: int = 0, end: int | None = None) -> list[Token]:
    """Returns the tokens of `text[start:end]` in order; places count from the text's beginning."""
    pieces = list(PIECE.finditer(text, start, len(text) if end is None else end))
    out: list[Token] = []
    skip = 0
    for i, piece in enumerate(pieces):
        if i < skip or piece.lastgroup == "sign":
            continue
        if piece.lastgroup == "run":
            out += _letters(text, piece.start(), piece.end())
            continue
        if piece.lastgroup == "number":
            factor, unit, skip = _behind(text, pieces, i, lang)
            value = numbers.digits(_whole_year(text, piece), lang) * factor
            value *= numbers.sign(text, piece.start())
            number = Number(value, numbers.unit_before(text, piece.start()) or unit)
            out.append(_numeral(number, piece.start(), pieces[skip - 1].end()))
            continue
        word = folded(piece[0])
        amount = numbers.word_value(word, lang)
        if amount is not None:
            number, skip = _spelled(text, pieces, i, amount, lang)
            out.append(_numeral(number, piece.start(), pieces[skip - 1].end()))
            continue
        kind = kind_of(word, lang)
        if kind == "not" and (after := _joined(text, pieces, i, 1)) and after[0] in _NO_DENIAL:
            kind = "stop"
        key = "not" if kind == "not" else word if kind == "stop" else stem(word, lang)
        named = kind == "word" and _named(text, piece, lang)
        capital = kind == "word" and piece[0][0].isupper()
        out.append(Token(kind, key, piece.start(), piece.end(), named, None, capital, word))
    return out


_YEAR = re.compile(r"(?<!\d)(\d\d)\d\d[-–/]\Z")  # the `20` of `2018–19`


def _whole_year(text: str, piece: re.Match[str]) -> str:
    """Returns a number's digits; `19` behind `2018–` is 2019."""
    year = _YEAR.search(text, max(0, piece.start() - 6), piece.start())
    short = re.compile(r"\d\d(?![-/]?\d)").match(text, piece.start())  # no month of `2018-05-12`
    return year[1] + piece[0] if year and short and len(piece[0]) == 2 else piece[0]


_NO_DENIAL = frozenset(("embargo", "obstante", "doute", "doubt"))  # `sin embargo`, `sans doute`


def _numeral(number: Number, start: int, end: int) -> Token:
    return Token("number", f"#{number.value:.9g}", start, end, False, number)


def _joined(text: str, pieces: list[re.Match[str]], i: int, k: int) -> tuple[str, int] | None:
    """Returns the folded k-th piece behind piece i, if but a space or a hyphen stands between."""
    if i + k >= len(pieces) or text[pieces[i + k - 1].end() : pieces[i + k].start()] not in (
        "",
        " ",
        "-",
        "\u00a0",
        "\u202f",
    ):
        return None
    return folded(pieces[i + k][0]), i + k


def _behind(text: str, pieces: list[re.Match[str]], i: int, lang: str) -> tuple[float, str, int]:
    """Returns (factor, unit, index of the first piece that is no part of the number)."""
    if i + 1 < len(pieces) and pieces[i + 1].lastgroup == "run":
        factor, _, unit = numbers.cjk_scale(text, pieces[i].end() + (text[pieces[i].end()] == " "))
        return factor, unit, i + 1
    factor, unit, taken = numbers.follow(lambda k: _joined(text, pieces, i, k), 1, lang)
    return factor, unit, i + 1 + taken


def _spelled(
    text: str, pieces: list[re.Match[str]], i: int, amount: int, lang: str
) -> tuple[Number, int]:
    """Reads a number in words from piece i on; returns it and the index behind it."""
    value, last = float(amount), i
    if amount >= 20 and amount % 10 == 0:
        after = _joined(text, pieces, i, 1)
        if after and after[0] in ("y", "et", "e"):
            after = _joined(text, pieces, i, 2)
        unit = numbers.word_value(after[0], lang) if after else None
        if after and unit is not None and unit < 10:
            value, last = value + unit, after[1]
    factor, unit_name, skip = _behind(text, pieces, last, lang)
    return Number(value * factor, unit_name), skip


_FRESH = re.compile(r"(?:\A|[.!?:;。！？\n|#*•\"“„«‘(\[-])[\s*_\"“„«‘(\[]*\Z")


def _named(text: str, piece: re.Match[str], lang: str) -> bool:
    """Tells whether a word is written like a name: a capital that no sentence start explains."""
    word = piece[0]
    if (word.isupper() and len(word) > 1) or any(c.isupper() for c in word[1:]):
        return True
    if not word[0].isupper() or lang == "de":
        return False
    return not _FRESH.search(text[max(0, piece.start() - 4) : piece.start()]) and piece.start() > 0


# Denial in Chinese, Japanese and Thai, without the words that merely hold such a letter.
DENIAL = re.compile(
    "不(?![仅僅但过過久断斷同少锈足管论論])|没有|没(?![收落])|沒|未(?![来來])|无法|無法|并非|並非|非(?![常洲凡])|"
    "(?<![个分区特离級级])别(?![人的])|勿|毫无|從未|从未|ない(?!し)|なかった|なく(?!とも)|ません|(?<=[らわかさたなまえけせてねめれべ])ず(?=に|、|。)|ぬ(?=。|、)|ไม่|มิได้|ปราศจาก"
)


def _letters(text: str, start: int, end: int) -> list[Token]:
    """Returns the letters of a run without spaces, keyed by pairs, its denials and its numbers."""
    run = text[start:end]
    out = [Token("letter", run[k : k + 2], start + k, start + k + 1) for k in range(len(run) - 1)]
    if len(run) == 1:
        out = [Token("letter", run, start, end)]
    out += [Token("not", "not", start + m.start(), start + m.end()) for m in DENIAL.finditer(run)]
    out += [_numeral(n, s, e) for n, s, e in numbers.cjk_numbers(text, start, end)]
    return sorted(out, key=lambda token: (token.start, token.kind))

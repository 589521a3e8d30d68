"""Makes claims from the sentences of a text: true ones, and each kind of untrue one.

Six languages. A generator yields nothing for a sentence that it cannot change sensibly.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping

TRUE = ("verbatim", "trimmed", "dressed", "joined", "both", "quoted", "elided")
NEVER = (
    "negated",
    "numbers swapped",
    "number",
    "scale",
    "unit",
    "sign",
    "names swapped",
    "turned",
    "opposite",
)

_NOT: Mapping[str, tuple[tuple[str, str], ...]] = {
    "en": (
        (r"\b(is|was|are|were|has|have|had|can|could|will|would|must|should)\b(?! not)", r"\1 not"),
        (r"\b(won|led|began|became|made|reached|grew|published|opened)\b", r"never \1"),
    ),
    "de": (
        (r"\b(ist|war|sind|waren|wurden?|hat|haben|hatte|kann|können|wird)\b", r"\1 nicht"),
    ),
    "es": (
        (r"\b(es|fue|era|son|eran|está|ha|había|tiene|puede|fueron|ganó|incluye)\b", r"no \1"),
    ),
    "fr": (
        (r"\b(est|était|a|avait)\b(?! pas)", r"n'\1 pas"),
        (r"\b(sont|fut|furent|peut|compte|gagne|reste)\b", r"ne \1 pas"),
    ),
    "zh": (
        (r"(?<!不)(是|会|能|可以|属于)(?!否)", r"不\1"),
        (r"(?<!没)有(?!限|效|机|关|的)", "没有"),
        (r"被", "没有被"),
    ),
    "ja": (
        (r"である(?=。)", "ではない"),
        (r"だった(?=。)", "ではなかった"),
        (r"した(?=。)", "しなかった"),
        (r"された(?=。)", "されなかった"),
        (r"ている(?=。)", "ていない"),
        (r"いた(?=。)", "いなかった"),
        (r"する(?=。)", "しない"),
        (r"れる(?=。)", "れない"),
        (r"ある(?=。)", "ない"),
    ),
}  # fmt: skip
Pairs = tuple[tuple[str, str], ...]


def _pairs(text: str) -> Pairs:
    return tuple((one, other) for one, _, other in (pair.partition("/") for pair in text.split()))


_OPPOSITES: Mapping[str, Pairs] = {
    "en": _pairs(
        "more/less before/after increased/reduced first/last largest/smallest higher/lower "
        "north/south eastern/western won/lost above/below highest/lowest"
    ),
    "de": _pairs(
        "mehr/weniger vor/nach größte/kleinste ersten/letzten höher/niedriger "
        "östlich/westlich stieg/sank höchsten/niedrigsten"
    ),
    "es": _pairs(
        "más/menos antes/después mayor/menor primer/último norte/sur oeste/este aumentó/redujo"
    ),
    "fr": _pairs("plus/moins avant/après premier/dernier nord/sud augmenté/diminué"),
    "zh": _pairs("增加/减少 最大/最小 高于/低于 之前/之后 上升/下降 支持/反对 东部/西部"),
    "ja": _pairs("増加/減少 最大/最小 上昇/低下 最高/最低 以前/以後 北部/南部 東部/西部"),
}
_UNITS = _pairs(
    """
    kilometers/miles kilometres/miles Kilometer/Meilen kilómetros/millas kilomètres/milles
    公里/英里 キロ/マイル years/days Jahre/Tage años/días ans/jours percent/degrees %/°
    Prozent/Grad meters/feet euros/dollars Euro/Dollar 米/英尺 tonnes/grams hours/minutes
    Stunden/Minuten メートル/フィート 小时/分钟 時間/分間 天/周
    """
)
_SCALES = _pairs(
    """
    million/billion Millionen/Milliarden millones/billones millions/milliards thousand/million
    亿/万 万/亿 億/万 billion/million Milliarden/Millionen
    """
)
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\d\w.,]*\d)")
_NAME = re.compile(r"(?<=[a-zà-ü,] )[A-ZÀ-Ü][a-zà-ü]{2,}(?: [A-ZÀ-Ü][a-zà-ü]{2,})*")
_BEAT = re.compile(
    r"^((?:The )?[A-Z][\w ]+?) (beat|defeated|bought|taught|besiegte|venció a|a battu) "
    r"((?:the )?[A-Z][\w ]+?)(?= in | by | en | par |\.)"
)
_MARKS = {"en": "“”", "de": "„“", "es": "«»", "fr": "«»", "zh": "“”", "ja": "「」"}
Maker = Callable[[str, str, str, random.Random], str]


def claims(sentence: str, after: str, lang: str, seed: int) -> Iterator[tuple[str, str]]:
    """Yields (kind, claim) for a sentence of a text and the one that follows it, or ""."""
    rng = random.Random(seed)
    for kind, make in MAKERS.items():
        made = make(sentence, after, lang, rng)
        if made and (kind == "verbatim" or made != sentence):
            yield kind, made


def _spaced(lang: str) -> bool:
    return lang not in ("zh", "ja")


def _trimmed(sentence: str, after: str, lang: str, rng: random.Random) -> str:
    if not _spaced(lang):
        whole = re.sub(
            r"\A[\x00-\u2fff]*[\u3000-\uffff]{2}[\x00-\u2fff、。，]*|[\x00-\u2fff]*.[\x00-\u2fff、。，！？）」』]*\Z",
            "",
            sentence,
        )
        return whole if len(whole) > 20 else ""
    words = sentence.split()
    return (
        " ".join(words[rng.randrange(3) : len(words) - rng.randrange(1, 3)])
        if len(words) > 10
        else ""
    )


def _dressed(sentence: str, after: str, lang: str, rng: random.Random) -> str:
    """Other quotation marks, dashes, Markdown, another look of thousands."""
    table = str.maketrans({"“": '"', "”": '"', "’": "'", "–": "-", '"': "”", "「": "“", "」": "”"})
    dressed = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "\u202f", sentence.translate(table))
    if _spaced(lang):
        words = dressed.split()
        middle = len(words) // 2
        words[middle] = f"**{words[middle]}**" if words[middle].isalpha() else words[middle]
        dressed = " ".join(words)
    return f"- {dressed}"


def _joined(sentence: str, after: str, lang: str, rng: random.Random) -> str:
    return f"{sentence}{' ' if _spaced(lang) else ''}{after}" if after else ""


def _both(sentence: str, after: str, lang: str, rng: random.Random) -> str:
    words = {"en": " and ", "de": " und ", "es": " y ", "fr": " et ", "zh": ",", "ja": "、"}
    return sentence.rstrip(".。!?！？") + words[lang] + after if after else ""


def _quoted(sentence: str, after: str, lang: str, rng: random.Random) -> str:
    if re.search("[\"'“”‘’„«»「」『』‹›‚]", sentence):
        return ""
    core = sentence.rstrip(".。!?！？")
    return f"{_MARKS[lang][0]}{core}{_MARKS[lang][1]}"


def _elided(sentence: str, after: str, lang: str, rng: random.Random) -> str:
    core = _quoted(sentence, after, lang, rng)
    parts = core.split() if _spaced(lang) else re.findall(r"[\x00-\u2fff]+|.", core)
    third = len(parts) // 3
    gap = " " if _spaced(lang) else ""
    return gap.join((*parts[:third], "…", *parts[-third:])) if third >= 3 else ""


def _fabricated(sentence: str, after: str, lang: str, rng: random.Random) -> str:
    core = _quoted(sentence, after, lang, rng)
    parts = core.split() if _spaced(lang) else list(core)
    if len(parts) < 8:
        return ""
    at = rng.randrange(2, len(parts) - 2)
    parts[at : at + 1] = {"zh": ["绿", "色"], "ja": ["緑", "色"]}.get(lang, ["xylophone"])
    return (" " if _spaced(lang) else "").join(parts)


def _negated(sentence: str, after: str, lang: str, rng: random.Random) -> str:
    for pattern, by in _NOT[lang]:
        if re.search(pattern, sentence):
            return re.sub(pattern, by, sentence, count=1)
    return ""


def _swap(sentence: str, pattern: re.Pattern[str]) -> str:
    found = list(pattern.finditer(sentence))
    for one in found:
        for other in found:
            if other.start() > one.end() and not {*one[0].split()} & {*other[0].split()}:
                middle = sentence[one.end() : other.start()]
                return (
                    sentence[: one.start()] + other[0] + middle + one[0] + sentence[other.end() :]
                )
    return ""


def _number(sentence: str, after: str, lang: str, rng: random.Random) -> str:
    found = [m for m in _NUMBER.finditer(sentence) if m[0].isdigit()]
    if not found:
        return ""
    one = rng.choice(found)
    return f"{sentence[: one.start()]}{int(one[0]) + rng.choice((1, 3, 10))}{sentence[one.end() :]}"


def _sign(sentence: str, after: str, lang: str, rng: random.Random) -> str:
    if re.search(r"[-−]\d", sentence):
        return re.sub(r"(?<![\d\w])[-−](?=\d)", "", sentence, count=1)
    return re.sub(
        r"(?<![\d\w-])(?=\d+(?:[.,]\d+)?\s?(?:%|°|percent|degrees|Prozent|Grad))",
        "-",
        sentence,
        count=1,
    )


def _by(pairs: tuple[tuple[str, str], ...]) -> Maker:
    def make(sentence: str, after: str, lang: str, rng: random.Random) -> str:
        for one, other in pairs:
            edge = r"\b" if _spaced(lang) and one.isalpha() else ""
            pattern = (
                rf"(?<=\d) ?{one}{edge}"
                if (one, other) in (*_UNITS, *_SCALES)
                else rf"{edge}{one}{edge}"
            )
            if found := re.search(pattern, sentence):
                return (
                    sentence[: found.start()]
                    + found[0].replace(one, other)
                    + sentence[found.end() :]
                )
        return ""

    return make


def _opposite(sentence: str, after: str, lang: str, rng: random.Random) -> str:
    return _by(_OPPOSITES[lang])(sentence, after, lang, rng)


def _turned(sentence: str, after: str, lang: str, rng: random.Random) -> str:
    found = _BEAT.match(sentence)
    return f"{found[3]} {found[2]} {found[1]}{sentence[found.end() :]}" if found else ""


MAKERS: Mapping[str, Maker] = {
    "verbatim": lambda sentence, after, lang, rng: sentence,
    "trimmed": _trimmed,
    "dressed": _dressed,
    "joined": _joined,
    "both": _both,
    "quoted": _quoted,
    "elided": _elided,
    "negated": _negated,
    "numbers swapped": lambda sentence, after, lang, rng: _swap(sentence, _NUMBER),
    "number": _number,
    "scale": _by(_SCALES),
    "unit": _by(_UNITS),
    "sign": _sign,
    "names swapped": lambda sentence, after, lang, rng: (
        "" if lang == "de" else _swap(sentence, _NAME)
    ),
    "turned": _turned,
    "opposite": _opposite,
    "fabricated": _fabricated,
}

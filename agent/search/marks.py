"""Finds the citation marks of an answer: the `[n]` in its prose that name a source.

A number in brackets is only a mark where the Markdown parser sees prose (no code, link, HTML or
mathematics) and where the words around it leave room for one: `items[1]`, `{"ids": [1, 2]}`,
`x = [1]`, `[0, 1]` and `[2024]` are the writer's own. https://spec.commonmark.org/0.31.2/
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from unicodedata import category

from searchloop.agent.search.answer_markdown import block_parser, inline_tokens

FREE = r"(?<![\\\[])(?<!(?<![^\s(])!)"  # neither escaped nor an image
# Up to three digits: four are a year. A `(` makes it a link.
MARK = re.compile(
    rf"{FREE}\[([1-9]\d{{0,2}}(?:\s?[,;、，]\s?[1-9]\d{{0,2}}){{0,7}})\]"
    r"(?![({\]]|_*[A-Za-z0-9]| ?=)",
    re.ASCII,
)
_LINK = re.compile(
    r"(?<![!\\])\[[^\[\]\n]{1,300}\]\(<?(?P<to>(?:[^()<>\s]|\([^()\s]*\)){1,2000})>?"
    r"""(?: "[^"\n]{0,200}")?\)"""
)
_NUMBER = re.compile(r"\d+")
_LIST = re.compile(r"\[\]|(?<!\w)\[-?\d+(?:\.\d+)?(?:, ?-?\d+(?:\.\d+)?)+\]")
_NUMERAL = re.compile(r"-?\d+(?:\.\d+)?")
_RAW = re.compile(
    r"<(?P<tag>code|pre|kbd|samp|var|tt|script|style|math|svg)\b[^<>]{0,200}>"
    r"|\\begin\{(?P<env>\w{1,20}\*?)\}"
)
_LEAD = re.compile(r"(?:\A|\n)[ \t>]*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6}) +)?[*_]{0,3}\Z")
_JOINS = re.compile(r"[ \t,;、，]*+\n?(?:and|und|et|y|和|と|、|[&/–-])? *")
_APART = re.compile(r"\n|[ \t][–-]|[–-] ")
_IDENTIFIER = re.compile(r"(?<![\w$.\\&'’°₀-₉])[\w$.\\]+\Z", re.ASCII)
_NO_NAME = re.compile(r"[.$]\Z|\A[\d.]+\Z|\$\d")  # an amount
# Names of variables; a capital begins those of `CO2`, `YouTube` and `Node.js`.
_NAME = re.compile(
    r"\A(?![A-Z]\d)\w\d?\Z|[_$\\]|\A(?!v\d)[a-z]\w*\.(?!.*\b(?:js|com|org)\Z)"
    r"|\A[a-z]{2,}(?:[A-Z]\w*[a-z]|\d)",
    re.ASCII,
)
_CALL = re.compile(r"[A-Za-z_]\([^()]*\)\Z")
_OR = "(?: or| and| to| into| by| with| oder| und| bis| zu| mit| o| ou| y| et| ?或| ?和| ?与| ?と)"
_OTHER = re.compile(rf"[\])]{_OR}\Z")
_ONE_OF = re.compile(rf"{_OR} ?\[\d+,| ?(?:→|⇒|->|=>)")
_KEY = re.compile(r"[ \t]*(?:- )?[a-z_][\w.-]*:[ \t]*\Z", re.ASCII)
_REFERENCE = re.compile(r"(?:\A|[\s(])\[[^\[\]\"',]*[^\W\d_]{2}[^\[\]\"',]*\]\Z")
_SENTENCE_ENDS = tuple(".!?…。！？")
_CLAUSE_ENDS = re.compile(r"[*_~]{0,3}\s*(?:\Z|\n|\.(?!\w)|[,;:!?…。，；：！？、)）」』”\"]|\|)")
_CLOSERS = "*_~"
_NO_OPERATOR = re.compile(
    r"(?<![\w.])(?:[A-Z]#|[A-Z0-9][\w.,]*[+⁺−⁻-]{1,2})\Z|[^\W_]{2}[*_~%”\"’')»]{0,4},\Z"
    r"|(?:<su[bp]|<br ?/?|</[a-z]{1,9})>\Z|(?<![\w<])<[^<>\s]+>\Z"
)
_NEAR = 10  # an invented number is not far above those that exist
# Numbers behind some words are an array; one number is a value or a name: "the result is [5]".
_WORDS = json.loads((files(__package__) / "mark_words.json").read_text("utf-8"))
_ARRAYS = re.compile(rf"(?i)(?:\b(?:{_WORDS['arrays']})|{_WORDS['unspaced']}|→|⇒|->|=>|↦)\Z")
_VARIABLES = re.compile(rf"(?:{_WORDS['variables']})\Z")
_CONTAINERS = re.compile(rf"(?:{_WORDS['containers']})\Z")
_VALUES = re.compile(rf"(?i)\b(?:{_WORDS['arrays']}|{_WORDS['values']})\Z")
_SAYS = re.compile(r"\b(?:\w{2,}(?:ed|ing)|shown|seen|found|given|refer) (?:in|on|to|at|by|from)\Z")
_SOURCES = re.compile(rf"(?i)(?:{_WORDS['sources']})\w*\W*\Z")


@dataclass(frozen=True, slots=True)
class Place:
    """A mark at [`start`, `end`) and the known `numbers` it holds; none: it names no source, and
    goes together with what joins it to the mark before."""

    start: int
    end: int
    numbers: tuple[int, ...]


def find(text: str, known: Container[int], highest: int = -_NEAR) -> list[Place]:
    """Returns the marks of `text` in order.

    With the `highest` known number, marks of numbers that do not exist are among them, where it
    is plain that they were meant as marks.
    """
    candidates = [] if MARK.fullmatch(text.strip()) else list(MARK.finditer(text))
    if not candidates:
        return []
    prose = _in_prose(text, candidates)
    found: list[Place] = []
    doubtful: list[Place] = []
    for match in candidates:
        numbers = [int(n) for n in _NUMBER.findall(match[1])]
        if match.start() not in prose:
            continue
        ours = tuple(dict.fromkeys(n for n in numbers if n in known))
        chained = _chained(text, match.start(), found)
        if ours and (chained or _stands_as_mark(text, match)):
            found.append(Place(*match.span(), ours))
        elif ours or len(numbers) > 1 or numbers[0] > highest + _NEAR:
            continue
        elif text[match.end() : match.end() + 1] == ":":
            continue  # the number of an error, say
        elif chained or _follows_a_statement(text, match):
            sure = chained or _CLAUSE_ENDS.match(text, match.end())
            (found if sure else doubtful).append(Place(*match.span(), ()))
    if doubtful and any(place.numbers for place in found):
        found = sorted([*found, *doubtful], key=lambda place: place.start)
    return _with_joins(text, found)


def links(text: str, number_at: Callable[[str], int | None]) -> list[Place]:
    """Returns the links in prose that lead to a source: they cite it in words."""
    found = [(m, n) for m in _LINK.finditer(text) if (n := number_at(m["to"]))]
    prose = _in_prose(text, [m for m, _ in found]) if found else ()
    return [Place(*m.span(), (n,)) for m, n in found if m.start() in prose]


def _with_joins(text: str, found: list[Place]) -> list[Place]:
    """Adds to places without numbers the comma or "and" that joins them to the one before.

    A dash beside a blank joins no range: it is the writer's.
    """
    out: list[Place] = []
    for place in found:
        joined = not place.numbers and _chained(text, place.start, out)
        if joined and not _APART.search(text, out[-1].end, place.start):
            place = replace(place, start=out[-1].end)
        out.append(place)
    return out


def _chained(text: str, start: int, found: list[Place]) -> bool:
    """Tells whether a bracket follows a mark, with nothing but a comma or "and" between."""
    return bool(found) and _JOINS.fullmatch(text, found[-1].end, start) is not None


def _stands_as_mark(text: str, match: re.Match[str]) -> bool:
    """Judges a bracket of known numbers by what stands around it."""
    start = match.start()
    before = text[max(0, start - 80) : start]
    if not match[1].isdigit():
        values = _are_values(before.rstrip(" \t\n" + _CLOSERS))
        if values or _ONE_OF.match(text, match.end()) or _beside_data(text, match):
            return False
    after = text[match.end() : match.end() + 3]
    if _LEAD.search(text, max(0, start - 80), start):  # but `[1]: x`, `[1] + [2]`, `[1].x`
        return not re.match(r":| ?[=+*^∪∩×−]|\.[a-z]|[²³ᵀⁿ]", after)
    line = before[before.rfind("\n") + 1 :]
    word = line.rstrip(" \t")
    glued = word == line
    last = word[-1:]
    if last in _CLOSERS:  # the end of emphasis, or a product
        word = word.rstrip(_CLOSERS)
        if not word or word[-1].isspace():
            return False
        last, glued = word[-1], glued and not word[-1].isascii()
    if _KEY.match(line) and not _SOURCES.search(line.strip()[:-1]):
        return False  # of YAML
    if last == "(":
        return not re.search(r"\w\(\Z", word, re.ASCII)
    if last == "|":
        rows = text[max(0, start - 2000) : start].replace(" ", "")
        return rows.rpartition("\n")[2].lstrip("\t>").startswith("|") or "-|" in rows
    operator = last in "*/^&{[,-@#\\" or category(last) == "Sm" or re.search("[\"'`]:\\Z", word)
    named = _REFERENCE.search(word)  # `[the page][1]`
    stray = last == "]" and (glued or after[:1] == ":") and not named
    if stray or (operator and not _NO_OPERATOR.search(word)):
        return False
    return not (glued and _is_index(text, match, word))


def _are_values(before: str) -> bool:
    """Tells whether several numbers are an array: a colon, an arrow or its name stands before."""
    if before.endswith((":", "：")):
        return _SOURCES.search(before[:-1]) is None
    named = _ARRAYS.search(before) and not _SAYS.search(before)
    return bool(named or before.endswith(",") or _OTHER.search(before))


def _beside_data(text: str, match: re.Match[str]) -> bool:
    """Tells whether a list of the same paragraph can only be data: it is empty, holds a number
    twice, below 1 or with a fraction, or is another one in another order."""
    begin = text.rfind("\n\n", max(0, match.start() - 300), match.start())
    end = text.find("\n\n", match.end(), match.end() + 300)
    near = text[max(begin, match.start() - 300, 0) : match.end() + 300 if end < 0 else end]
    lists = {tuple(map(float, _NUMERAL.findall(found[0]))) for found in _LIST.finditer(near)}
    apart = any(min(each, default=0) < 1 or len({*map(int, each)}) < len(each) for each in lists)
    return apart or len({tuple(sorted(each)) for each in lists}) < len(lists)


def _is_index(text: str, match: re.Match[str], word: str) -> bool:
    """Tells whether a bracket right behind a word is an index of code and no mark."""
    name = _IDENTIFIER.search(word)
    if word.endswith(")"):
        return _CALL.search(word) is not None
    if not name or _NO_NAME.search(name[0]):
        return False
    if re.search(r"\d[ \u00a0*_]{1,3}(?:\w{1,3}/)?\Z", word[: name.start()]):
        return False  # a unit
    after = text[match.end() : match.end() + 2]
    if re.match(r":|[./][A-Za-z_]|\[", after) and not re.match(r"\[\d+\]", text[match.end() :][:6]):
        return True
    in_code = _CONTAINERS.match(name[0]) and not _CLAUSE_ENDS.match(text, match.end())
    if in_code or _NAME.search(name[0]) or _VARIABLES.match(name[0]):
        return True
    # A word that is indexed nearby too, or written as code, is a variable. Nothing behind the
    # paragraph counts: a terminal has shown it by then.
    end = text.find("\n\n", match.end(), match.end() + 300)
    near = text[max(0, match.start() - 300) : match.end() + 300 if end < 0 else end]
    name_twice = rf"\b{re.escape(name[0])}(?:\[(?!\d{{1,3}}\]|{match[1]}\])[^\]\n]{{1,20}}\]|`)"
    return bool(re.search(name_twice, near))


def _follows_a_statement(text: str, match: re.Match[str]) -> bool:
    """Tells whether a bracket stands behind words, as citation marks do."""
    before = text[max(0, match.start() - 40) : match.start()]
    word = before.rstrip(" \t")
    if _VALUES.search(word) or _OTHER.search(word) or (word == before and _CALL.search(word)):
        return False
    last = word.rstrip(_CLOSERS)[-1:]
    if last in _SENTENCE_ENDS or last in '”»」』)）"':
        return True
    # Glued to a Latin letter it is an index; scripts without spaces glue their marks.
    return last.isalnum() and (word != before or not last.isascii())


def _in_prose(text: str, candidates: list[re.Match[str]]) -> set[int]:
    """Returns where those brackets begin that the parser sees as text.

    Each bracket is parsed as a word that no text holds, and looked for in what the parser gives.
    """
    sign = next(ch for ch in map(chr, range(0xF0000, 0xF1000)) if ch not in text)
    raw = _raw(text)
    starts = [match.start() for match in candidates]
    starts = [at for at in starts if not any(first <= at < last for first, last in raw)]
    ends = {match.start(): match.end() for match in candidates}
    out: list[str] = []
    last = 0
    for at in starts:
        out += (text[last:at], f"{sign}{at}{sign}")
        last = ends[at]
    out.append(text[last:])
    tokens = block_parser().parse("".join(out))
    inline = (t.content for t in tokens if t.type == "inline" and sign in t.content)
    return {
        int(at) for content in inline for words in _words(content) for at in words.split(sign)[1::2]
    }


def _words(content: str) -> Iterator[str]:
    links = 0
    for token in inline_tokens(content):
        links += token.nesting if token.type.startswith("link_") else 0
        if token.type == "text" and links == 0:
            yield token.content


def _raw(text: str) -> list[tuple[int, int]]:
    """Returns the ranges of HTML and TeX that the parser takes for text but a reader for code."""
    found: list[tuple[int, int]] = []
    reached, missing = 0, set[str]()
    for opening in _RAW.finditer(text):
        end = f"</{opening['tag']}" if opening["tag"] else f"\\end{{{opening['env']}}}"
        if opening.start() < reached or end in missing:
            continue
        reached = text.find(end, opening.end())
        if reached < 0:
            missing.add(end)
            continue
        found.append((opening.start(), reached))
    return found

"""Raised and lowered characters as text: `10^24`, `x^(n+1)`, `H2O`, `log_2 8`, `1st`, `5.2[1]`.

A raised number is an exponent, the mark of a note, or the mass of an isotope. Pages write all
alike, and to take one for another makes a wrong number. What decides is, in this order: a link or a
name that says so, the text around it, and the notes of the page, which are counted from 1.
"""

from __future__ import annotations

import re
from functools import cached_property
from html import escape
from itertools import takewhile

from searchloop.search_backend.readers._html.parts import WORDS
from searchloop.search_backend.readers._html.text import TAG, plain

_REACH = 400
_LINKED_MARK = re.compile(r"<a ([^<>]*+)>\s*+([\d*†‡]{1,3}|[a-z])\s*</a>")
_NAMED_NOTE = re.compile(r"(?i)\b(?:reference|foot-?note|end-?note|note-?ref|cite|citation|fn)")
_ELEMENT = WORDS["elements"]
_is_isotope = re.compile(rf"\d*(?:{_ELEMENT})(?![a-z])").match
_is_element, _is_oxidation = re.compile(_ELEMENT).fullmatch, re.compile("[IVX]{1,4}").fullmatch
_is_light = re.compile("H(?![a-z])|He|Li").match
_is_mass_before = re.compile(r"(?:.*[\s(])?\d*").fullmatch
# What a number below the line belongs to without a sign between: H2O, PM2.5, SpO2, HbA1c.
_is_formula = re.compile(
    rf"(?:.*[^A-Za-z)])?(?:[A-Z]{{2,4}}|[a-zS]?p?[(\[]?(?:{_ELEMENT})(?:{_ELEMENT}|[()\[\]\d])*)"
).fullmatch
_is_unit, _is_function = (re.compile(WORDS[kind]).fullmatch for kind in ("units", "functions"))
_is_number = re.compile(r"[-−+–]?\d+(?:[.,]\d+)?").fullmatch
_is_fraction = re.compile(r"\d{1,3}[/⁄]\d{1,3}").fullmatch
_is_list = re.compile(
    r"\d{1,3}(?:\s*[,;–-]\s*\d{1,3})+|[a-z](?:\s*[,;]\s*[a-z])+"
    r"|(?=.*[*†‡§¶‖])(?:\d{1,3}|[a-z]|[*†‡§¶‖])(?:[\s,;]*(?:\d{1,3}|[a-z]|[*†‡§¶‖]))+"
).fullmatch
_is_in_brackets = re.compile(r"\((?:\d{1,3}|[a-z])\)").fullmatch
_is_charge = re.compile(r"\d*[+−–-]+").fullmatch
_is_variable = re.compile(r"[i-zA-Zα-ω]′*").fullmatch
_is_mark = re.compile(r"[*†‡§¶#‖]+").fullmatch
_is_glued = re.compile(r"(?i)[™®©℠°′″ªº]|TM|SM|\(R\)").fullmatch
_is_ordinal = re.compile(rf"(?i)(?:{WORDS['ordinals']})\.?").fullmatch
_is_ordered = re.compile(r"(?:.*[^\w.,$€£¥])?(?:\d{1,3}\.?|[IVXLC]+)").fullmatch
_is_short_form = re.compile(rf"(?:.*\W)?(?:{WORDS['short_forms']})").fullmatch
# Cents above the line, as shops write them.
_CURRENCY = r"[$€£¥₹₽₺₩]|\b(?:EUR|USD|GBP|CHF|kr|zł|Kč|Ft)"
_is_price = re.compile(rf".*(?:{_CURRENCY})\s*(?:\d{{1,3}}(?:[.,\s]\d{{3}})+|\d+)").fullmatch
_begins_with_currency = re.compile(rf"\s*(?:{_CURRENCY})").match
_goes_on = re.compile(r"(?:.*[^\s>]|.*</\w{1,6}>)(?<!\b10)", re.DOTALL).fullmatch
# One letter, but not the first one of a name: "the sphere S", not "Smith J".
_ends_in_variable = re.compile(r"(?:\b[a-z]+\s|[^\w\s]\s?)[^\W\d_]$").search
_ends_in_name = re.compile(r"\b[A-Z][a-z]+\s$").search
_INDEX = re.compile(
    r"(?<=[a-zA-Zα-ω>])<sub(?: [^<>]*)?>(?:[^<]|<(?!/?su[bp][ >]))*</sub>(?:</\w+>)*$"
)
# Letters of formulas beyond the alphabets: ℝ, ℓ, 𝔽.
_is_math_sign = re.compile("[\u2100-\u214f\U0001d400-\U0001d7ff]").fullmatch
_BEHIND_SCRIPT = re.compile(r"</su[bp]>(?=(?:<[^<>]*>){0,9}[^\W\d])")
_OPERATOR = "=+×·⋅*÷<>≤≥≈∼±∝≡"
_ends_in_operator = re.compile(rf"[{_OPERATOR}(√∑∫^−]\s*$").search
_begins_with_operator = re.compile(rf"\s*[{_OPERATOR}]").match
_NUMBER_BEFORE = re.compile(r"(?<![\d.,\u202f\xa0])[\d.,\u202f\xa0]*\d$")
_LETTERS_BEFORE = re.compile(r"(?<![^\W\d_])[^\W\d_]+$")
_BRACKETS_BEFORE = re.compile(r"[(\[|]([^()\[\]|]{1,60})[)\]|]$")
_is_calculation = re.compile(rf"[^\W\d_]|.*[{_OPERATOR}/−-].*|[\d.]+").fullmatch
_is_year_or_amount = re.compile(r"1[5-9]\d\d|20\d\d|.*[.,\u202f\xa0].*").fullmatch


class Scripts:
    """The raised and lowered characters of pieces of markup between `cut`."""

    def __init__(self, text: str, cut: str) -> None:
        self._text, self._cut = text, cut
        anything = rf"[^{cut}<]*+(?>(?:<(?!/?su[bp][ >])[^{cut}<]*+)*)"
        self._script = re.compile(
            r"(<a (?P<link>[^<>]*)>\s*)?<(?P<tag>su[bp])(?P<name>(?: [^<>]*)?)>"
            rf"(?P<held>{anything})</(?P=tag)>(?(1)(\s*</a>)?)"
        )

    @cached_property
    def _notes(self) -> set[str]:
        return self._counted() | self._explained()

    def _counted(self) -> set[str]:
        """The numbers from 1 on that stand raised behind a word or number; nobody writes `x^1`."""
        raised = re.finditer(r"<sup(?: [^<>]*)?>\s*(\d{1,3}|[a-z])\s*</sup>", self._text)
        found = set()
        for mark in raised:
            before = self._text[max(0, mark.start() - 40) : mark.start()]
            if _goes_on(before[-8:]) and not _ends_in_variable(TAG.sub("", before)):
                found.add(mark[1])
        numbers = takewhile(found.__contains__, map(str, range(1, 1000)))
        letters = [*takewhile(found.__contains__, "abcdefgh")]
        return {*numbers, *(letters if len(letters) > 1 else ())}

    def _explained(self) -> set[str]:
        """The marks that begin a piece, as notes do."""
        start = rf"(?:^|{self._cut})\s*(?:<(?!su[bp])[^<>{self._cut}]*>)*"
        mark = r"<sup(?: [^<>]*)?>\s*[\[(]?(\w{1,3})[\])]?\s*</sup>(?!(?:<[^<>]*>|\d)*[A-Z])"
        return set(re.findall(start + mark, self._text))

    def written(self) -> str:
        """Returns the text without them."""
        text = self._text
        for _ in range(3):  # one inside another
            text = self._script.sub(self._one, text)
        return text

    def _one(self, match: re.Match[str]) -> str:
        held = " ".join(plain(TAG.sub("", match["held"])).split())
        rest = match.group(0)[match.end("held") - match.start() :]
        start = match["link"]
        is_whole = start is not None and rest.endswith("</a>")
        kept = f"<a {start}>" if start is not None and not is_whole else ""
        if not held:
            return kept
        whole = match.string
        if match["tag"] == "sup" and self._is_linked(match, start if is_whole else None, held):
            space = " " if whole[match.end() : match.end() + 1] in ("(", ":") else ""
            return f"{kept}{escape(_note(held), quote=False)}{space}"
        before = whole[max(0, match.start() - _REACH) : match.start()].rpartition(self._cut)[2]
        # What stands before a script that is still open is not what the one inside belongs to.
        start = max(before.rfind("<sup"), before.rfind("<sub"))
        if start >= 0 and "</su" not in before[start:]:
            before = before[start:].partition(">")[2]
        after = whole[match.end() : match.end() + _REACH].partition(self._cut)[0]
        is_next = not after.startswith(("<sup", "<sub"))
        if match["tag"] == "sup":  # x_i^2 is a power of x, and a^n b^n one of b
            before = _BEHIND_SCRIPT.sub(" ", _INDEX.sub("", before))
        before, after = plain(TAG.sub("", before)), plain(TAG.sub("", after))
        # What follows at once would be part of a power or an index.
        space = " " if is_next and after[:1].isalnum() else ""
        if match["tag"] == "sub":
            text = _lowered(held, before, after, space)
        else:
            text = self._raised(held, before, after, space)
        if text[-1] == "]" and after[:1] in ("(", ":"):
            text += " "
        return kept + escape(text, quote=False)

    def _is_linked(self, match: re.Match[str], link: str | None, held: str) -> bool:
        """Tells whether a link into a page or a name says that it is the mark of a note."""
        said = f"{match['name']} {link or ''} {match['held'] if '<' in match['held'] else ''}"
        is_link = 'href="' in said and ("#" in said or held[0] == "[")
        return is_link or (_NAMED_NOTE.search(said) is not None and len(held) <= 12)

    def _raised(self, held: str, before: str, after: str, space: str) -> str:
        if held[0] == "[" or _is_mark(held) or _is_in_brackets(held):
            alone = _LETTERS_BEFORE.search(before)
            is_alone = alone is not None and len(alone[0]) == 1
            is_power = is_alone and (held == "*" or held[1:2].isalpha())
            return _power(held, space) if is_power else _note(held) if before else held
        is_ordered = _is_ordinal(held) and _is_ordered(before) and held not in self._notes
        if is_ordered or _is_glued(held) or _is_short_form(before + held):
            return held
        if before[-1:].isdigit() and (part := self._part_of_number(held, before, after)):
            return part
        if before[-1:].isspace() and self._is_apart(held, before.rstrip()):
            return f"^{held}{space}"
        if not before or before[-1].isspace() or before[-1] in "([-–—/^":
            is_mass = held.rstrip("m").isdigit() and (_is_isotope if len(held) > 1 else _is_light)(
                after
            )
            if is_mass and (before.strip() or held not in self._notes):
                return f"^{held}"
            return f"[{held}]" if _is_number(held) else held
        if self._is_power(held, before, after):
            return _power(held, space)
        return _note(held)

    def _part_of_number(self, held: str, before: str, after: str) -> str:
        """Returns cents and fractions, which go on with the number before them."""
        if _is_fraction(held) and not _ends_in_operator(before[:-1]):
            return f" {held}"
        if re.fullmatch(r"[.,]\d\d", held):
            return held
        is_price = held not in self._notes and (_is_price(before) or _begins_with_currency(after))
        return f".{held}" if is_price and re.fullmatch(r"\d\d", held) else ""

    def _is_apart(self, held: str, before: str) -> bool:
        """Tells whether an exponent stands behind a blank: `10 <sup>23</sup>`, `m <sup>2</sup>`."""
        word = _LETTERS_BEFORE.search(before)
        if _is_number(held) is None or (held[0] not in "-−+–" and held in self._notes):
            return False
        is_unit = word is not None and _is_unit(word[0]) and word[0] != "in" and len(held) < 2
        return is_unit or re.search(r"[×x·*⋅]\s*10$", before) is not None

    def _is_power(self, held: str, before: str, after: str) -> bool:
        is_number = _is_number(held) is not None
        if (is_number and held[0] in "-−+–") or _is_charge(held):
            return True
        if number := _NUMBER_BEFORE.search(before):
            return self._is_power_of_number(held, number[0], before[: number.start()], after)
        if word := _LETTERS_BEFORE.search(before):
            return self._is_power_of_word(held, word[0], before[: word.start()], after)
        if inside := _BRACKETS_BEFORE.search(before):
            told = held in self._notes and not _begins_with_operator(after)
            return _is_calculation(inside[1]) is not None and not told
        return before[-1] in "∇∂∆Δ)" and held not in self._notes

    def _is_power_of_number(self, held: str, number: str, before: str, after: str) -> bool:
        within = _ends_in_operator(before) or _begins_with_operator(after)
        if number == "10":
            return bool(within) or re.split(r"\W", held)[0] not in self._notes or held[1:].isdigit()
        if not held.isdigit():
            return bool(_is_variable(held)) or (not _is_list(held) and len(held) > 1)
        if within:
            return not (_is_year_or_amount(number) and held in self._notes)
        return held not in self._notes and not _is_year_or_amount(number)

    def _is_power_of_word(self, held: str, word: str, before: str, after: str) -> bool:
        within = _ends_in_operator(before) or before[-1:].isdigit()
        if len(word) == 1 and (word <= "\u0500" or _is_math_sign(word)):
            is_note = held == "1" or _ends_in_name(before) is not None
            return not _is_list(held) and (not is_note or bool(within) or held not in self._notes)
        if _is_function(word) or (_is_oxidation(held) and _is_element(word)):
            return True
        is_unit = _is_unit(word) and (held in ("2", "3") or held not in self._notes)
        if is_unit and word == "in" and not re.search(r"\d\s*$|/\s*$", before):
            is_unit = None
        return bool(is_unit) or (len(word) <= 3 and bool(within) and held != "1")


def marks(text: str) -> str:
    """Text with numbers that link into the page, right behind a word, as notes."""
    return _LINKED_MARK.sub(_unraised, text)


def _unraised(note: re.Match[str]) -> str:
    if 'href="#' not in note[1] and not ("#" in note[1] and _NAMED_NOTE.search(note[1])):
        return note[0]
    before = note.string[note.start() - 1 : note.start()]
    return _note(note[2]) if before.isalnum() or (before in '.,;%)”"’' and before) else note[0]


def _power(held: str, space: str) -> str:
    if len(held) > 1 and not _is_number(held) and not _is_in_brackets(held):
        held = f"({held})"
    return f"^{held}{space}"


def _note(held: str) -> str:
    return held if held[0] == ":" else f"[{held.strip('[]() .') or held}]"


def _lowered(held: str, before: str, after: str, space: str) -> str:
    if held.isdigit() and _is_isotope(after) and _is_mass_before(before):
        return f"_{held}"
    if not before or not (before[-1].isalnum() or before[-1] in ")]}|′'^∑∫∏Σ"):
        return held
    word = before.split()[-1]
    is_count = re.fullmatch(r"\d{1,3}(?:\.\d+)?[a-z]?", held) or (held in "xyn" and len(word) > 1)
    is_base = held in ("8", "10", "16") and set(word) <= set("0123456789ABCDEF")
    if is_count and not is_base and not before[-1].isdigit() and _is_formula(word):
        return held + space * after[:1].isdigit()
    return f"_{held}{space}" if held.isalnum() else f"_({held}){space}"

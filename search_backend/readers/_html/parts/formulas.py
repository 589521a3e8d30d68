"""Formulas as TeX between dollar signs: MathML, what KaTeX and MathJax make of it, images of it.

A page often has a formula twice or three times, one of them hidden: for eyes, for screen readers,
and as its source. Its source is taken if it says no more than what is shown.
Spec: https://www.w3.org/TR/MathML3/chapter3.html
"""

from __future__ import annotations

import json
import re
import unicodedata
from importlib.resources import files

from selectolax.lexbor import LexborHTMLParser, LexborNode

# Characters of TeX, and of the MathML that an attribute holds.
LONGEST, LONGEST_HELD = 4_000, 40_000
DEEPEST = 40
_SCRIPTS = 'script[type^="math/tex"]'
# What holds a formula more than once; lexbor looks for the first of them.
_HOLDERS = ".katex,mjx-container,.mwe-math-element,.MathJax[data-mathml]"
_MATH = r"math,m\:math,mml\:math"
FORMULAS = f"{_SCRIPTS},{_HOLDERS},{_MATH}"
_RENDERED = frozenset(("MathJax", "MathJax_Preview", "MathJax_Display", "MathJax_SVG"))
_STYLED = re.compile(r"^(\{\s*)?\\(?:display|text)style(?![a-z])\s*(.*)(?(1)\})$", re.DOTALL)
_COMMANDS = re.compile(r"\\(?:begin|end|color|label|hspace\*?)\s*\{[^{}]*\}|\\[a-zA-Z]+|\\.")
# Functions by name, and the TeX of signs, accents and styles of letters.
_TEX = json.loads((files(__package__) / "tex.json").read_text("utf-8"))
FUNCTIONS, _SIGNS = frozenset(_TEX["functions"].split()), _TEX["signs"]
ACCENTS, _VARIANTS = _TEX["accents"], _TEX["variants"]
# Forms of the elements of Office, then of MathML.
OFFICE = _TEX["office"]
_FORMS = OFFICE | _TEX["mathml"]
_INVISIBLE = dict.fromkeys(range(0x2061, 0x2065), "")
_ends_in_name = re.compile(r"(?:\\[a-zA-Z]+|[\^_]\w)$").search


def write_formulas(tree: LexborHTMLParser) -> None:
    """Puts TeX in the place of each formula. To be done before hidden elements are removed, which a
    formula may be; in a hidden place TeX is as hidden."""
    for script in tree.css(_SCRIPTS):
        for before in (script.prev, script.prev and script.prev.prev):
            if before is not None and not _RENDERED.isdisjoint(_classes(before)):
                before.remove()
        kind = script.attributes.get("type") or ""
        script.replace_with(as_formula(script.text() or "", "mode=display" in kind))
    for holder in tree.css(_HOLDERS):
        math, source = holder.css_first("math"), holder.css_first("[data-latex]")
        if holder.parent is None:
            continue
        if held := holder.attributes.get("data-mathml"):
            math = LexborHTMLParser(held[:LONGEST_HELD]).css_first("math")
        said = f"{holder.attributes.get('class')} {' '.join(_classes(holder.parent))}"
        is_display = holder.attributes.get("display") == "true" or "katex-display" in said
        if math is not None:
            is_display = is_display or _is_display(math)
            holder.replace_with(as_formula(_source(math), is_display))
        elif source is not None:  # MathJax 4 has no MathML
            holder.replace_with(as_formula(source.attributes["data-latex"] or "", is_display))
    for math in tree.css(_MATH):
        if math.parent is not None:
            math.replace_with(as_formula(_source(math), _is_display(math)))


def as_formula(tex: str, is_display: bool) -> str:
    """Returns TeX between its signs."""
    if styled := _STYLED.match(tex := tex.strip()[:LONGEST]):
        tex = styled[2].strip()
    tex = tex.strip("$").strip()
    sign = "$$" if is_display else "$"
    return f"{sign}{tex}{sign}" if tex else ""


def _classes(node: LexborNode) -> list[str]:
    return (node.attributes.get("class") or "").split() if node.is_element_node else []


def _is_display(math: LexborNode) -> bool:
    return math.attributes.get("display") == "block" or math.attributes.get("mode") == "display"


def _source(math: LexborNode) -> str:
    """Returns the TeX that a formula brings along, else what its elements say."""
    note = math.css_first('annotation[encoding="application/x-tex"],annotation[encoding*=TeX]')
    for said in (note.text() if note is not None else "", math.attributes.get("alttext")):
        if said and _says_no_more(said, math):
            return said
    return _tex(math, 0)


def _says_no_more(tex: str, math: LexborNode) -> bool:
    """Tells whether all words and numbers of a source stand in what is shown, too."""
    shown = "".join(
        node.text(deep=True) or "" for node in math.css("mi,mn,mo,mtext,ms") if node.parent
    )
    shown = re.sub(r"\s", "", unicodedata.normalize("NFKC", shown)).casefold()
    words = re.findall(r"[^\W\d_]{2,}|\d+", _COMMANDS.sub(" ", tex))
    return all(
        word.casefold() in shown or (word.isdigit() and all(c in shown for c in word))
        for word in words
    )


def _tex(node: LexborNode, depth: int) -> str:
    """Returns the TeX of an element of MathML."""
    tag = (node.tag or "").rpartition(":")[2]
    if tag in ("mi", "mn", "mo", "mtext", "ms"):
        return _token(tag, node)
    inside = [child for child in node.iter() if child.tag != "annotation"]
    if depth > DEEPEST:
        return node.text(deep=True) or ""
    parts = [_tex(child, depth + 1) for child in inside]
    said = node.attributes
    if tag in ("mphantom", "mspace", "annotation-xml", "mprescripts", "maligngroup"):
        return " " if tag == "mspace" else ""
    if tag in ("semantics", "maction"):
        return parts[0] if parts else ""
    if tag == "mmultiscripts":
        return _multiscripts(inside, parts)
    if tag == "mfrac" and (said.get("linethickness") or "1").strip("0pxemt.") == "":
        tag = "binomial"
    elif tag == "menclose" and "strike" in (said.get("notation") or ""):
        tag = "struck"
    elif tag in ("munder", "mover") and len(parts) == 2:
        tag, parts = _over(tag, *parts)
    signs = said.get("separators", ",") or ""
    between = signs[:1].strip() + " " if signs.strip() else " "
    return filled(tag, parts, said.get("open") or "(", between, said.get("close") or ")")


def _over(tag: str, base: str, other: str) -> tuple[str, list[str]]:
    """Returns the form of what stands over or under something, and its parts."""
    shown = {tex: sign for sign, tex in _SIGNS.items()}.get(other, other)
    if shown in ACCENTS:
        return "acc", [base, ACCENTS[shown]]
    if base.startswith("\\") and base[1:].isalpha():  # a sum or limit
        return "msub" if tag == "munder" else "msup", [base, other]
    return "limLow" if tag == "munder" else "limUpp", [base, other]


def filled(tag: str, parts: list[str], first: str, between: str, last: str) -> str:
    """Returns the TeX of an element of these parts, which has such brackets and separators."""
    inside = joined(parts)
    scripts = (_group(part) for part in (*parts[1:], "", ""))
    return str(_FORMS.get(tag, "{inside}")).format(
        *(*parts, "", "", ""),
        base=grouped(parts[0]) if parts else "",
        script=next(scripts),
        upper=next(scripts),
        inside=inside,
        listed=first + between.join(parts) + last,
        cells=" & ".join(parts),
        rows=r" \\ ".join(parts),
        name=rf"\{inside}" if inside in FUNCTIONS else inside,
    )


def _multiscripts(inside: list[LexborNode], parts: list[str]) -> str:
    """Pairs of a lower and an upper script: those behind the base, then those before it."""
    tags = [node.tag for node in inside]
    middle = tags.index("mprescripts") if "mprescripts" in tags else len(tags)

    def pairs(scripts: list[str]) -> str:
        found = zip(scripts[::2], scripts[1::2], strict=False)
        return "".join(
            f"_{_group(low)}" * bool(low) + f"^{_group(high)}" * bool(high) for low, high in found
        )

    before = pairs(parts[middle + 1 :])
    return f"{'{}' if before else ''}{before}{parts[0] if parts else ''}{pairs(parts[1:middle])}"


def _token(tag: str, node: LexborNode) -> str:
    text = (node.text(deep=True) or "").translate(_INVISIBLE)
    text = re.sub(r"\s+", " ", text.strip(" \t\n\r\f"))  # its own blanks are hard ones
    if tag in ("mtext", "ms"):
        return rf"\text{{{text}}}" if text else " "
    text = signs(text)
    variant = _VARIANTS.get(node.attributes.get("mathvariant") or "")
    if variant and text:
        return rf"\{variant}{{{text}}}"
    if tag == "mi" and len(text) > 1 and text.isalpha():
        return rf"\{text}" if text in FUNCTIONS else rf"\mathrm{{{text}}}"
    return text


def signs(text: str) -> str:
    """Returns the TeX of the signs and Greek letters in a text."""
    return joined([_SIGNS.get(sign) or _greek(sign) or sign for sign in text])


def _greek(sign: str) -> str:
    """Returns the TeX of a Greek letter, by its name."""
    if not "\u0391" <= sign <= "\u03c9":
        return ""
    _, size, *_, name = unicodedata.name(sign, "GREEK X X").split()
    name = "LAMBDA" if name == "LAMDA" else name
    return "\\" + (name.title() if size == "CAPITAL" else name.lower()) if len(name) > 1 else ""


def joined(parts: list[str]) -> str:
    """Returns TeX with a blank between a command and a letter."""
    text = ""
    for part in parts:
        if part[:1].isalpha() and _ends_in_name(text):
            text += " "
        text += part
    return text


def _group(text: str) -> str:
    return text if len(text) == 1 else f"{{{text}}}"


def grouped(text: str) -> str:
    """Groups what a script would otherwise belong to the end of only."""
    is_one = (
        len(text) <= 1 or text.isdigit() or re.fullmatch(r"\\[a-zA-Z]+(?:\{[^{}]*\})?|\(.*\)", text)
    )
    return text if is_one else f"{{{text}}}"

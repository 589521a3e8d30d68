"""Formulas as TeX between dollar signs: MathML, what KaTeX and MathJax make of it, images of it.

A page often has a formula twice or three times, one of them hidden: for eyes, for screen readers,
and as its source. Its source is taken if it says no more than what is shown.
Spec: https://www.w3.org/TR/MathML3/chapter3.html
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from operator import itemgetter

from selectolax.lexbor import LexborHTMLParser, LexborNode

# Characters of TeX, of the MathML that makes it, and of the drawing that makes that.
LONGEST, LONGEST_DRAWN, MOST_DRAWN = 4_000, 40_000, 200_000
DEEPEST = 40
_SCRIPTS = 'script[type^="math/tex"]'
# What holds a formula more than once; lexbor looks for the first of them.
_HOLDERS = ".katex,mjx-container,.mwe-math-element,.MathJax[data-mathml]"
_MATH = r"math,m\:math,mml\:math"
FORMULAS = f"{_SCRIPTS},{_HOLDERS},{_MATH}"
_RENDERED = frozenset(("MathJax", "MathJax_Preview", "MathJax_Display", "MathJax_SVG"))
# The sign that an element draws, and what has several parts.
_CODE = re.compile(r'(?:mjx-c|data-c="|href="#[^">]*-)([0-9A-F]{2,5})(?=[ "])[^>]*')
_LIFTED = re.compile(r"translate\([^,]*,\s*(-?[\d.]+)")
_STACKS = frozenset(("msupsub", "mfrac", "op-limits", "accent", "overline"))
_is_operator = re.compile(r"(?:<mrow>)*<m[io]>(?:[∑-∳⋀-⋃⨀-⨆]|[a-z]{2})").match
_LAYER_NAMES = "script frac dbox dtable row box sqrt root table itable g svg"
_LAYERS = frozenset(_LAYER_NAMES.split())
_SCRIPTED = frozenset(("msub", "msup", "msubsup", "munder", "mover", "munderover"))
_DRAWN = _SCRIPTED | {"mfrac", "msqrt", "mroot", "mtable", "mtr", "mtd"}
_STYLED = re.compile(r"^(\{\s*)?\\(?:display|text)style(?![a-z])\s*(.*)(?(1)\})$", re.DOTALL)
_COMMANDS = re.compile(r"\\(?:begin|end|color|label|hspace\*?)\s*\{[^}]*\}|\\[a-zA-Z]+|\\.")
# Functions by name, and the TeX of signs, accents and styles of letters.
_TEX = json.loads((files(__package__) / "tex.json").read_text("utf-8"))
FUNCTIONS, _SIGNS = frozenset(_TEX["functions"].split()), _TEX["signs"]
ACCENTS, _VARIANTS, OFFICE = _TEX["accents"], _TEX["variants"], _TEX["office"]
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
        image, math = holder.css_first("img[alt]"), holder.css_first("math")
        source = holder.css_first("[data-latex]")
        if holder.parent is None:
            continue
        if image is math is source is None and len(holder.html or "") < MOST_DRAWN:
            made = (
                holder.attributes.get("data-mathml") or f"<math>{''.join(_drawn(holder, 0))}</math>"
            )
            math = LexborHTMLParser(made[:LONGEST_DRAWN]).css_first("math")
        if image is not None:
            said = f"{image.attributes.get('class')} {holder.attributes.get('class')}"
            is_display = "display" in said or "block" in said
            holder.replace_with(as_formula(image.attributes.get("alt") or "", is_display))
        elif math is not None:
            is_display = "katex-display" in _classes(holder.parent) or _is_display(math)
            is_display = is_display or holder.attributes.get("display") == "true"
            holder.replace_with(as_formula(_source(math), is_display))
        elif source is not None:  # MathJax 4 has no MathML
            is_display = holder.attributes.get("display") == "true"
            holder.replace_with(as_formula(source.attributes["data-latex"] or "", is_display))
    for math in tree.css(_MATH):
        if math.parent is not None:
            math.replace_with(as_formula(_source(math), _is_display(math)))


def _drawn(node: LexborNode, depth: int) -> list[str]:
    """Returns the MathML of what MathJax or KaTeX drew for eyes alone."""
    if node.is_text_node:
        text = (node.text() or "").strip(" \n\u200b")
        return _sign("mn" if text[:1].isdigit() else "mo", text)
    said = node.attributes.get("data-mml-node")
    tag = (said or (node.tag or "").removeprefix("mjx-")).lower()
    classes = {name.removeprefix("katex-") for name in _classes(node)}
    if tag in ("mi", "mn", "mo", "mtext"):
        drawn = "".join(chr(int(code, 16)) for code in _CODE.findall(node.html or ""))
        drawn = unicodedata.normalize("NFKC", drawn) if max(drawn, default="") > "\ud7ff" else drawn
        return _sign(tag, drawn.strip("√"))
    if depth > 9 * DEEPEST or tag in ("surd", "style", "defs"):
        return []
    if "text" in classes or "overlay" in classes:
        return _sign("mtext", node.text(deep=True)) if "text" in classes else _sign("mo", "→")
    if "mtable" in classes:
        stacks = [column.css_first(".vlist") for column in node.css("[class^=col-align]")]
        cells = [[_drawn(cell, depth + 1) for cell in one.iter()] for one in stacks if one]
        rows = [
            "".join(_wrapped("mtd", cell)[0] for cell in row if cell)
            for row in zip(*cells, strict=False)
        ]
        return _wrapped("mtable", [f"<mtr>{row}</mtr>" for row in rows])
    stack = node.css_first(".vlist") if not _STACKS.isdisjoint(classes) else None
    made: list[tuple[float, str]] = []
    for child in (stack or node).iter(include_text=True):
        parts = _drawn(child, depth + 1)
        if parts and "msupsub" in _classes(child):
            low = "msub" if child.css_first(".vlist-t2") is not None else "msup"
            base = made.pop()[1] if made else "<mrow></mrow>"
            parts = _wrapped("msubsup" if len(parts) > 1 else low, [base, *parts])
        found = _LIFTED.match(child.attributes.get("transform") or "") if said and made else None
        made += [(float(found[1]) if found else 0.0, part) for part in parts]
    if tag in _SCRIPTED and said:  # a drawing says how high each script stands
        made[1:] = sorted(made[1:], key=itemgetter(0))
    if "mfrac" in classes or tag == "mfrac":
        is_line = any(sign in (node.html or "") for sign in ("frac-line", "<rect", "<mjx-line"))
        tag = "mfrac" if is_line else 'mfrac linethickness="0"'
    return _laid(tag, said, classes, [part for _, part in made])


def _laid(tag: str, said: str | None, classes: set[str], parts: list[str]) -> list[str]:
    """Returns the parts of a drawn element in the order of MathML. KaTeX stacks from the bottom up,
    MathJax writes from the top down."""
    if "msupsub" in classes or tag in _LAYERS:
        return parts
    if tag.startswith("mfrac"):
        return _wrapped(tag, parts[::-1] if "mfrac" in classes else parts)
    if "overline" in classes or "accent" in classes:
        return _wrapped("mover", [*parts, *_sign("mo", "¯")][:2])
    if "op-limits" in classes:
        at = next((k for k, part in enumerate(parts) if _is_operator(part) or k), 0)
        tag = ("mover", "munder")[at] if len(parts) == 2 else "munderover"
        return _wrapped(tag, [parts[at], *parts[:at], *parts[at + 1 :]])
    if tag == "munderover" and len(parts) == 2:  # above it, and the rest
        parts = [parts[1].removeprefix("<munder>").removesuffix("</munder>"), parts[0]]
    elif tag in ("msubsup", "munderover") and not said:
        parts[1:] = parts[:0:-1]
    elif (tag in ("mover", "mroot") and not said) or "sqrt" in classes:
        parts = parts[::-1]
    name = "mroot" if len(parts) > 1 else "msqrt"
    name = tag if tag in _DRAWN else name if "sqrt" in classes else "mrow"
    if name == "mrow" and (len(parts) == 1 or (not parts and tag != "texatom")):
        return parts
    return _wrapped(name, parts)


def _sign(tag: str, text: str) -> list[str]:
    tag = "mi" if tag == "mo" and text.isalpha() else tag
    return [f"<{tag}>{escape(text)}</{tag}>"] if text else []


def _wrapped(tag: str, parts: Sequence[str]) -> list[str]:
    return [f"<{tag}>{''.join(parts)}</{tag.partition(' ')[0]}>"]


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
    if tag in ("mphantom", "mspace", "annotation-xml", "mprescripts", "maligngroup"):
        return " " if tag == "mspace" else ""
    if tag in ("semantics", "maction"):
        return parts[0] if parts else ""
    if tag in _LAYOUTS and len(parts) == _LAYOUTS[tag]:
        return _laid_out(tag, parts, node)
    match tag:
        case "msqrt":
            return rf"\sqrt{{{joined(parts)}}}"
        case "menclose" if "strike" in (node.attributes.get("notation") or ""):
            return rf"\cancel{{{joined(parts)}}}"
        case "mfenced":
            sign = node.attributes.get
            signs = sign("separators", ",") or ""
            between = signs[:1].strip() + " " if signs.strip() else " "
            return f"{sign('open') or '('}{between.join(parts)}{sign('close') or ')'}"
        case "mtable":
            return r"\begin{matrix} " + r" \\ ".join(parts) + r" \end{matrix}"
        case "mtr" | "mlabeledtr":
            return " & ".join(parts)
        case "mmultiscripts":
            return _multiscripts(inside, parts)
    return joined(parts)


_TWO = ("mfrac", "mroot", "msup", "msub", "munder", "mover")
_LAYOUTS = {**dict.fromkeys(_TWO, 2), "msubsup": 3, "munderover": 3}


def _laid_out(tag: str, parts: list[str], node: LexborNode) -> str:
    first, second = parts[0], parts[1]
    match tag:
        case "mfrac":
            if (node.attributes.get("linethickness") or "1").strip("0pxemt.") == "":
                return rf"{{{first} \atop {second}}}"
            return rf"\frac{{{first}}}{{{second}}}"
        case "mroot":
            return rf"\sqrt[{second}]{{{first}}}"
        case "msup" | "msub":
            return f"{grouped(first)}{'^' if tag == 'msup' else '_'}{_group(second)}"
        case "msubsup" | "munderover":
            return f"{grouped(first)}_{_group(second)}^{_group(parts[2])}"
    shown = {tex: sign for sign, tex in _SIGNS.items()}.get(second, second)
    if shown in ACCENTS:
        return f"{ACCENTS[shown]}{{{first}}}"
    is_limits = first.startswith("\\") and first[1:].isalpha()
    sign = "_" if tag == "munder" else "^"
    if is_limits:
        return f"{first}{sign}{_group(second)}"
    return rf"\{'under' if tag == 'munder' else 'over'}set{{{second}}}{{{first}}}"


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

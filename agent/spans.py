"""Where in a text a citation lies, when the provider's offsets cannot be taken at their word.

Providers count in code points or UTF-16 units, with or without the last character, or are simply
off. A range is believed when it contains the cited address; otherwise the readings are tried in
turn, and then the link itself is looked for. A range never leaves the text.
"""

from __future__ import annotations


def without_tracking(url: str) -> str:
    """`url` as the page is known elsewhere: without the marks of who linked to it."""
    if "utm_" not in url.partition("?")[2]:
        return url
    page, _, rest = url.partition("?")
    query, mark, fragment = rest.partition("#")
    kept = "&".join(part for part in query.split("&") if not part.startswith("utm_"))
    return f"{page}?{kept}{mark}{fragment}" if kept else f"{page}{mark}{fragment}"


def locate(text: str, start: int, end: int, url: str) -> tuple[int, int] | None:
    """The half-open code-point range of the citation of `url`, or None when there is none."""
    link = url if url in text else without_tracking(url)
    if link not in text:
        start, end = max(0, start), min(end, len(text))
        return (start, end) if start < end else None
    fits = [
        (first, last)
        for first, last in _readings(text, start, end)
        if 0 <= first < last <= len(text) and link in text[first:last]
    ]
    whole = _around(
        text, text.find(link, fits[0][0]) if fits else _nearest(text, link, start), link
    )
    # A shifted range may hold the address still, and only the right one begins with its link.
    return whole if not fits or whole in fits else fits[0]


def widen(text: str, at: int) -> tuple[int, int] | None:
    """The sentence that ends at `at`: for a citation whose own mark was taken out of the text."""
    end = len(text[:at].rstrip())
    begin = max(
        text.rfind("\n", 0, end), *(text.rfind(stop, 0, end - 1) for stop in (". ", "! ", "? "))
    )
    begin += 1 + (text[begin + 1 : begin + 2] == " ")
    return (begin, end) if begin < end else None


def _readings(text: str, start: int, end: int) -> list[tuple[int, int]]:
    readings = [(start, end), (start, end + 1)]
    if not text.isascii() and max(text) > "\uffff":
        first, last = _code_point(text, start), _code_point(text, end)
        readings += [(first, last), (first, last + 1)]
    return readings


def _code_point(text: str, units: int) -> int:
    """The index of the code point at an offset in UTF-16 units."""
    encoded = text.encode("utf-16-le", "surrogatepass")[: max(0, units) * 2]
    return len(encoded.decode("utf-16-le", "ignore"))


def _nearest(text: str, link: str, start: int) -> int:
    before = text.rfind(link, 0, max(0, start) + len(link))
    after = text.find(link, max(0, start))
    if before < 0 or (after >= 0 and after - start < start - before):
        return after
    return before


def _around(text: str, at: int, link: str) -> tuple[int, int]:
    """The whole link that holds the address at `at`, with the brackets around it."""
    start, end = at, at + len(link)
    while end < len(text) and text[end] not in " \t\r\n)>]\"'":
        end += 1
    opened = text.rfind("[", 0, start) if text[start - 2 : start] == "](" else -1
    if opened >= 0 and text[end : end + 1] == ")" and "\n" not in text[opened:start]:
        start, end = opened, end + 1
        if text[start - 1 : start] == "(" and text[end : end + 1] == ")":
            start, end = start - 1, end + 1
    return start, end

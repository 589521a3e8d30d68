"""Mail: who wrote what to whom and when, the text, and the names of attachments. RFC 5322, 2045"""

from __future__ import annotations

import email
import email.policy
from email.message import EmailMessage
from itertools import islice

from searchloop.analysis.dates import iso_date
from searchloop.search_backend.readers import Reader
from searchloop.search_backend.readers._html.whole import file_name, whole_page
from searchloop.search_backend.text.clean import cleaned, decode, one_line
from searchloop.search_backend.types import Page, Problem, failed_page

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_MOST_PARTS = 200
_MOST_HEADER = 1000


def read(body: bytes, url: str, _charset: str | None) -> Page:
    """Returns the mail as text below its headers; the title is its subject."""
    try:
        mail = email.message_from_bytes(body, policy=email.policy.default)
        heads = {name: _header(mail, name) for name in _HEADERS}
        text, attached = _text(mail, url)
    except (RecursionError, LookupError, ValueError, TypeError, AttributeError):
        return failed_page(url, _BAD)
    lines = [f"{name}: {value}" for name, value in heads.items() if value]
    if attached:
        lines.append(f"Attachments: {', '.join(attached)}")
    if not lines and not text.strip():
        return failed_page(url, _BAD)
    found, unseen = cleaned("\n".join(lines) + "\n\n" + text)
    title = one_line(heads["Subject"] or file_name(url))
    return Page(url, url, title, found.strip(), published=iso_date(heads["Date"]), invisible=unseen)


def _header(mail: EmailMessage, name: str) -> str:
    try:
        return one_line(str(mail.get(name, "")), _MOST_HEADER)
    except (ValueError, LookupError, IndexError, AttributeError):  # a header that is none
        return ""


def _text(mail: EmailMessage, url: str) -> tuple[str, list[str]]:
    """Returns the text, of two versions the plain one, and the names of the attachments."""
    plain, rich, attached = list[str](), list[str](), list[str]()
    for part in islice(mail.walk(), _MOST_PARTS):
        kind = part.get_content_type()
        if part.is_attachment() or part.get_filename():
            attached.append(one_line(part.get_filename() or kind, 100))
        elif kind in ("text/plain", "text/html"):
            data = part.get_payload(decode=True)
            words = decode(data if isinstance(data, bytes) else b"", part.get_content_charset())
            (plain if kind == "text/plain" else rich).append(words)
    return "\n\n".join(plain or [whole_page(markup, url).text for markup in rich]), attached


_BAD = Problem("bad_document", "This mail is damaged.", "Save it once more in your mail program.")
READER = Reader(frozenset({"message/rfc822"}), frozenset({".eml"}), read)

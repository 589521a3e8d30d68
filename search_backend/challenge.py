"""Recognise answers that are no page: refusals, challenges to prove humanity, and error statuses.

Marker words count only in a short text, or an article about such pages would be taken for one.
"""

from __future__ import annotations

import re

from search_backend.types import PageStatus, Problem

SHORT_TEXT = 2_000

_TITLES = re.compile(
    r"^(just a moment|attention required|access denied|access to this page has been denied"
    r"|are you (a robot|human)|security check|please wait|one more step|pardon our interruption"
    r"|robot check|bot verification|human verification|checking your browser|ddos[- ]guard"
    r"|request blocked|forbidden|verify(ing)? (you|that you|your))",
    re.IGNORECASE,
)
_TEXTS = re.compile(
    r"verify (that )?you('re| are)( not)? (a )?(human|robot)"
    r"|checking (if the site connection|your browser)"
    r"|(complete|solve) (the|this) (captcha|challenge|security check)|unusual traffic from your"
    r"|you have been blocked|enable javascript and cookies to continue|are you a robot"
    r"|automated (access|requests|queries)|press (&|and) hold|not a robot|ray id",
    re.IGNORECASE,
)
_REFUSING = frozenset({403, 429, 503})
_USE_ANOTHER = "Use another source; the site may open in a person's browser."


def judge(status: int, title: str, text: str) -> tuple[PageStatus, Problem | None]:
    """Whether an HTTP answer is a page, by its status, title and main text."""
    if status in _REFUSING or (status < 400 and _is_challenge(title, text)) or status == 451:
        if status == 429:
            message = "The site limits how often it may be asked (HTTP 429)."
        elif status < 400:
            message = "The site wants proof that a person is asking, not a program."
        else:
            message = f"The site refused to show the page to a program (HTTP {status})."
        return "blocked", Problem("blocked", message, _USE_ANOTHER)
    if status in (401, 407):
        return "error", Problem(
            "login_required", f"The page needs a login (HTTP {status}).", "Use a public source."
        )
    if status in (404, 410):
        return "error", Problem(
            "not_found",
            f"There is no page at this address (HTTP {status}).",
            "Search for the page; it may have moved.",
        )
    if status >= 400:
        fault = "The site has a fault" if status >= 500 else "The site did not accept the request"
        return "error", Problem(
            f"http_{status}", f"{fault} (HTTP {status}).", "Try again later, or use another source."
        )
    return "ok", None


def _is_challenge(title: str, text: str) -> bool:
    if len(text) > SHORT_TEXT:
        return False
    return _TITLES.match(title.strip()) is not None or _TEXTS.search(text) is not None

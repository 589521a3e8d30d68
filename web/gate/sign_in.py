"""The sign-in page: one HTML document without scripts, in the language that the browser asks for.

It stands before the gate, so it loads nothing: no file of ours is given to whoever has no token.
"""

from __future__ import annotations

import hashlib
import html
import json
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from string import Template

PATH = "/sign-in"
CODES = ("no_token", "bad_token", "too_many_guesses")  # refusals that a browser gets as this page

_PAGE = (Path(__file__).parent / "sign_in.html").read_text("utf-8")
_STYLE = _PAGE.partition("<style>")[2].partition("</style>")[0]
_HASH = b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
# By language, the words of the page, which no file of the page may bring to whoever has no token.
WORDS: Mapping[str, Mapping[str, str]] = json.loads(
    (Path(__file__).parent / "sign_in.json").read_bytes()
)
_TAGS = {"zh": "zh-CN"}


def page(code: str, accepted: str, seconds: int = 0) -> str:
    """Returns the page for a refusal, in the best language of an Accept-Language header.

    The form's own Origin would be `null` under the server's `no-referrer`, hence its own rule.
    """
    language = _language(accepted)
    words = {name: html.escape(text) for name, text in WORDS[language].items()}
    problem = words[code].format(seconds=seconds) if code in words else ""
    alert = f'<p role="alert" id="problem">{problem}</p>' if problem else ""
    about = ' aria-invalid="true" aria-describedby="problem"' if problem else ""
    where = words["where"].format(file="<code>token</code>")
    given = {"tag": _TAGS.get(language, language), "alert": alert, "about": about}
    return Template(_PAGE).substitute({**words, **given, "where": where})


def _language(accepted: str) -> str:
    """Returns the language of ours that the browser likes best (RFC 9110 12.5.4)."""
    from werkzeug.datastructures import LanguageAccept
    from werkzeug.http import parse_accept_header

    liked = (name for name, quality in parse_accept_header(accepted, LanguageAccept) if quality)
    return next((tag for name in liked if (tag := name.partition("-")[0].lower()) in WORDS), "en")

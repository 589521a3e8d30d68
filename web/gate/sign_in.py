"""What a browser gets that the gate keeps out: one HTML document without scripts, in its language.

It stands before the gate, so it loads nothing: no file of ours is given to whoever has no token.
"""

from __future__ import annotations

import hashlib
import html
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from string import Template

from searchloop.render.words import spoken, words_of

PATH = "/sign-in"
_ASKS = ("no_token", "bad_token", "too_many_guesses")  # refusals that ask for the token

_PAGE = (Path(__file__).parent / "sign_in.html").read_text("utf-8")
_STYLE = _PAGE.partition("<style>")[2].partition("</style>")[0]
_HASH = b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_WORDS = ("title", "label", "button", "link", "bad_token", "too_many_guesses")


def is_shown(accept: str, path: str) -> bool:
    """Tells whether a refusal is for a person: a browser asked for a page."""
    return "text/html" in accept and not path.startswith("/api/")


def page(error: Mapping[str, str], accepted: str, seconds: int = 0) -> str:
    """Returns the page for a refusal, in the best language of an Accept-Language header.

    It asks for the token where that is missing, and else says what happened and what to do. The
    form's own Origin would be `null` under the server's `no-referrer`, hence its own rule.
    """
    from werkzeug.datastructures import LanguageAccept
    from werkzeug.http import parse_accept_header

    liked = parse_accept_header(accepted, LanguageAccept)
    texts = words_of(spoken(name for name, worth in liked if worth))
    if (code := error["code"]) not in _ASKS:
        what, rest = map(html.escape, texts.error(error))
        head = Template(_PAGE.partition("<body>")[0])
        top = head.substitute(tag=texts["language.tag"], title=what)
        return f'{top}<body><main><h1>{what}</h1><p>{rest}</p><a href="/">searchloop</a></main>'
    words = {name: html.escape(texts.say(f"enter.{name}", seconds=seconds)) for name in _WORDS}
    alert = f'<p role="alert" id="problem">{words[code]}</p>' if code in words else ""
    about = ' aria-invalid="true" aria-describedby="problem"' if alert else ""
    where = html.escape(texts["enter.where"])
    where = where.format(file="<code>token</code>", setting="SEARCHLOOP_TOKEN")
    given = {"tag": texts["language.tag"], "alert": alert, "about": about, "where": where}
    return Template(_PAGE).substitute(words | given)

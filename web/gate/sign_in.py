"""The sign-in page: one HTML document without scripts, in the language that the browser asks for.

It stands before the gate, so it loads nothing: no file of ours is given to whoever has no token.
"""

from __future__ import annotations

import hashlib
import html
from base64 import b64encode
from collections.abc import Mapping

PATH = "/sign-in"
CODES = ("no_token", "bad_token", "too_many_guesses")  # refusals that a browser gets as this page

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "title": "Sign in to searchloop",
        "label": "Access token",
        "button": "Sign in",
        "where": "The token is in the file {file} of searchloop's data folder on the computer "
        "where it runs, or it is what SEARCHLOOP_TOKEN was set to there. This prints the folder:",
        "link": "A new start link is printed each time searchloop starts.",
        "bad_token": "This token or start link is not valid. A start link works once.",
        "too_many_guesses": "Too many wrong tokens came from your address. Try again in {seconds} "
        "seconds.",
    },
    "de": {
        "title": "Bei searchloop anmelden",
        "label": "Zugangs-Token",
        "button": "Anmelden",
        "where": "Das Token steht in der Datei {file} im Datenordner von searchloop auf dem "
        "Rechner, auf dem es läuft, oder es ist das, was dort als SEARCHLOOP_TOKEN gesetzt ist. "
        "Dies zeigt den Ordner:",
        "link": "Bei jedem Start gibt searchloop einen neuen Startlink aus.",
        "bad_token": "Dieses Token oder dieser Startlink ist nicht gültig. Ein Startlink gilt "
        "einmal.",
        "too_many_guesses": "Von Ihrer Adresse kamen zu viele falsche Token. Versuchen Sie es in "
        "{seconds} Sekunden wieder.",
    },
    "zh": {
        "title": "登录 searchloop",
        "label": "访问令牌",
        "button": "登录",
        "where": "令牌位于运行 searchloop 的计算机上其数据文件夹的 {file} 文件中，"
        "或者就是在那里设置的 SEARCHLOOP_TOKEN。以下命令会显示该文件夹：",
        "link": "searchloop 每次启动时都会输出一个新的启动链接。",
        "bad_token": "该令牌或启动链接无效。启动链接只能使用一次。",
        "too_many_guesses": "来自您地址的错误令牌过多。请在 {seconds} 秒后重试。",
    },
}
_TAGS = {"zh": "zh-CN"}
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f1e; --ground: #f6f7f6; --line: #7a8583;
  --main: #0f6b63; --bad: #a3221b }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eceb; --ground: #161a19; --line: #8b9694; --main: #7fd6cb; --bad: #ff9d94 }
}
body { margin: 0; min-height: 100vh; display: grid; place-items: center;
  background: var(--ground); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif }
main { box-sizing: border-box; width: min(30rem, 100%); padding: 1.5rem }
h1 { font-size: 1.4rem; margin: 0 0 1rem }
label { display: block; font-weight: 600; margin-bottom: .3rem }
input, button { box-sizing: border-box; width: 100%; min-height: 2.75rem; padding: .5rem .75rem;
  font: inherit; border-radius: .5rem; border: 1px solid var(--line) }
input { background: Field; color: FieldText }
button { margin-top: .75rem; background: var(--main); color: var(--ground);
  border-color: transparent; font-weight: 600; cursor: pointer }
:focus-visible { outline: 3px solid var(--main); outline-offset: 2px }
[role=alert] { color: var(--bad); font-weight: 600 }
code { overflow-wrap: anywhere }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
"""
_HASH = b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


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
    return f"""<!doctype html>
<html lang="{_TAGS.get(language, language)}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin"><meta name="color-scheme" content="light dark">
<title>{words["title"]}</title><style>{_STYLE}</style></head>
<body><main><h1>{words["title"]}</h1>{alert}
<form method="post" action="{PATH}" autocomplete="on">
<input class="unseen" name="user" value="searchloop" autocomplete="username" tabindex="-1"
 aria-hidden="true" readonly>
<label for="token">{words["label"]}</label>
<input id="token" name="token" type="password" autocomplete="current-password" required
 autofocus{about}>
<button>{words["button"]}</button></form>
<p>{where} <code>searchloop config</code></p><p>{words["link"]}</p></main></body></html>
"""


def _language(accepted: str) -> str:
    """Returns the language of ours that the browser likes best (RFC 9110 12.5.4)."""
    likes = []
    for place, part in enumerate(accepted.split(",")):
        tag, _, quality = part.strip().partition(";q=")
        try:
            likes.append((-float(quality or 1), place, tag.partition("-")[0].lower()))
        except ValueError:
            continue
    return next((tag for worth, _, tag in sorted(likes) if worth and tag in WORDS), "en")

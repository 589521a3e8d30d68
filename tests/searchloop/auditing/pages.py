"""A search backend of a few pages, for audits: what it was asked, and what each address answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

WALL = (
    "The council approved 64 million crowns for the outer wall in March 2025. "
    "Crest level of the wall rises from 6.2 metres to 7.6 metres. "
    'The harbour master said: "It should rarely be overtopped again." '
    "No works take place between November and February. "
    "Fishing boats cannot use berths 10 to 14 during the works."
)
PAGES: Mapping[str, str | tuple[str, ...]] = {
    "https://council.example/wall": WALL,
    "https://old.example/wall": WALL,
    "https://weather.example/": "It will rain on Monday in the hills, then the sun comes.",
    "https://gone.example/": ("not_found", "There is no page at this address (HTTP 404)."),
    "https://guarded.example/": ("blocked", "The site refused to show the page (HTTP 403)."),
    "https://login.example/": ("login_required", "The page needs a login (HTTP 401)."),
    "https://slow.example/": ("timeout", "The page did not come within 20 s."),
    "https://nobody.example/": ("not_reachable", "No public web server could be reached."),
    "https://picture.example/": ("no_text", "There is no text on this page."),
}


class Pages:
    """Answers /api/open-page; `asked` are the requests that came."""

    def __init__(self, pages: Mapping[str, Any] = PAGES) -> None:
        self.pages, self.asked = pages, list[dict[str, Any]]()

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request."""
        url = str(body["url"])
        self.asked.append(dict(body))
        found = self.pages.get(url, ("not_reachable", "No public web server could be reached."))
        told: dict[str, Any] = {"url": url, "final_url": url, "title": "A page"}
        told |= {"published": "2025-06-02", "content": found}
        told |= {"next_offset": None, "status": "ok", "error": None}
        if isinstance(found, str):
            return told | ({"final_url": "https://new.example/wall"} if "old." in url else {})
        if found[0] == "title":
            return told | {"title": found[1], "content": found[2]}
        status = "blocked" if found[0] == "blocked" else "error"
        error = {"code": found[0], "message": found[1], "remedy": ""}
        return told | {"content": "", "status": status, "error": error}

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """As a WSGI application."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(self.answer(json.loads(body))).encode()]

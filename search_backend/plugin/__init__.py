"""The values that engines and readers are written with: settings, an HTTP request and its answer.

An engine or a reader declares its settings and turns plain values into plain values; it neither
sends nor waits.

Others may import: answers, challenge_pages, entry_points, markup.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote, unquote_to_bytes, urlencode

from searchloop.analysis.redaction import redacted

# Values of settings by name. One that is not set is missing or empty.
Keys = Mapping[str, str]
_USER = re.compile(r"(?<=://)([^\s/?#]*)@")
_FIELD = re.compile(
    r"[?&][\w.-]{0,60}(?:key|token|secret|passw)[\w.-]{0,60}=([^\s&#]+)", re.IGNORECASE
)
_SHORTEST = 6  # a key of fewer characters is a word that may stand anywhere
_JSON = json.JSONEncoder(ensure_ascii=False).encode
Method = Literal["GET", "POST"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of an engine or a reader, with its aliases. A `secret` is never shown."""

    name: str
    help: str
    default: str = ""
    aliases: tuple[str, ...] = ()
    secret: bool = False


SearchSetting = Setting  # its public name: the agent has a Setting too


def secrets_in(keys: Keys, settings: Iterable[Setting]) -> list[str]:
    """Returns the texts that no message may quote: the values of secret `settings`, keys, and the
    passwords and keys inside addresses, plain and encoded."""
    secret = {setting.name for setting in settings if setting.secret}
    found = [v for name, v in keys.items() if name in secret or name.endswith(("_KEY", "_TOKEN"))]
    for value in keys.values():
        for user in _USER.findall(value):
            found += [unquote(user.rpartition(":")[2]), b64encode(unquote_to_bytes(user)).decode()]
        found += [form for said in _FIELD.findall(value) for form in (said, unquote(said))]
    return found


def without_keys(text: str, secrets: Iterable[str]) -> str:
    """Removes from `text` the secrets, however a server has cut or encoded them."""
    known = [secret for secret in secrets if len(secret) >= _SHORTEST]
    for secret in known:
        text = text.replace(secret, "[key]")
    return redacted(text, known, "[key]")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. `url` is absolute and ASCII. Headers and body may contain a key, so `repr` omits
    them."""

    method: Method
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer with lower-case names of headers and the decompressed body.

    `rows` are what the selectors of an engine (`markup.Markup`) found in it: a text for each field,
    [] where the page says that there is nothing, None where it holds neither.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    rows: list[dict[str, str]] | None = None


def web_form(scheme: str, name: str, path: str) -> str:
    """Returns the web address that stands for SCHEME://NAME/PATH.

    `name` is a host label, `path` is percent-encoded.
    """
    return f"https://{name}.{scheme}.invalid/{path}"


def get(
    url: str, parameters: Mapping[str, object], headers: Mapping[str, str] | None = None
) -> HttpRequest:
    """Makes a GET with the query `parameters`; a list repeats its name for each value.

    `headers` may hold a key.
    """
    joint = "&" if "?" in url else "?"
    query = urlencode(parameters, doseq=True)
    return HttpRequest("GET", f"{url}{joint}{query}", dict(headers or {}))


def post(
    url: str, value: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> HttpRequest:
    """Makes a POST of `value` as JSON.

    `headers` may hold a key.
    """
    return HttpRequest(
        "POST", url, {"Content-Type": "application/json", **(headers or {})}, _JSON(value).encode()
    )

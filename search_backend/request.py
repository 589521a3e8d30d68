"""The head of every request for a page: the same few lines for all, nothing about the user.

Spec: RFC 9112 3
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata

from search_backend.errors import ConfigError
from search_backend.urls import Target

_ACCEPT = "text/html,application/xhtml+xml,text/*;q=0.9,application/*;q=0.8,*/*;q=0.1"


def request_head(target: Target, user_agent: str, conditions: Mapping[str, str]) -> bytes:
    """A GET of `target` with nothing that could go to the wrong server.

    `conditions` are headers that this server's own words were made of.
    """
    lines = (
        f"GET {target.path} HTTP/1.1",
        f"Host: {target.authority}",
        f"User-Agent: {user_agent}",
        f"Accept: {_ACCEPT}",
        "Accept-Encoding: gzip, deflate",
        *(f"{name}: {value}" for name, value in conditions.items()),
        "Connection: close",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


@cache
def agent_name(user_agent: str) -> str:
    """The User-Agent header: what the settings say, by default the project's name and version."""
    if user_agent:
        if not re.fullmatch(r"[ -~]{1,200}", user_agent):
            raise ConfigError(
                "bad_user_agent",
                "The user agent is not a line of printable ASCII.",
                "Shorten it to 200 plain characters.",
            )
        return user_agent
    try:
        version = metadata.version("searchloop")
    except metadata.PackageNotFoundError:
        version = "0"
    return f"searchloop/{version} (+local)"

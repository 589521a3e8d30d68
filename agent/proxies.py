"""The proxies of the environment: which one leads to an origin, and whether it can be used.

HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY count as for other programs. A proxy's address may
hold a password, so no error says what it is.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from agent.errors import ConfigError

if TYPE_CHECKING:
    import httpcore2

    from agent.wire import Origin

_NO_HOST = frozenset("[]/%@ ")


def proxy_for(origin: Origin) -> str | None:
    """The address of the proxy on the way there; none for this machine itself."""
    from urllib.request import proxy_bypass

    if origin.here or proxy_bypass(f"{origin.host}:{origin.port}"):
        return None
    return _set_for(origin.scheme)


def opened(address: str) -> httpcore2.Proxy:
    """It as the library takes it. Raises ConfigError (bad_proxy)."""
    import httpcore2
    import httpx2

    try:
        proxy = httpx2.Proxy(address)
        host, port = proxy.url.host, proxy.url.port
        if not host or _NO_HOST & set(host) or not (port is None or 0 < port < 65_536):
            raise ValueError("no address of a proxy")
        if proxy.url.scheme.startswith("socks") and find_spec("socksio") is None:
            raise ValueError("no socksio")
    except (ValueError, httpx2.InvalidURL):
        # Not chained: the library's message holds the address, password included.
        raise ConfigError(
            "bad_proxy",
            "The proxy address of the environment cannot be used.",
            "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY: http://host:port "
            "(socks5:// needs the package socksio).",
        ) from None
    url = httpcore2.URL(
        scheme=proxy.url.raw_scheme,
        host=proxy.url.raw_host,
        port=proxy.url.port,
        target=proxy.url.raw_path,
    )
    return httpcore2.Proxy(url, auth=proxy.raw_auth)


def check() -> None:
    """Raises ConfigError (bad_proxy) when one that is set cannot be used."""
    for scheme in ("http", "https"):
        if address := _set_for(scheme):
            opened(address)


def _set_for(scheme: str) -> str | None:
    from urllib.request import getproxies

    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"

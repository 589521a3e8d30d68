"""Reads proxies and certificates from the environment as other programs do.

A proxy's address may contain a password, so no error repeats it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from searchloop.agent.errors import ConfigError
from searchloop.agent.transport.exchange import Origin, origin_of

if TYPE_CHECKING:
    import ssl


def proxy_for(origin: Origin) -> str | None:
    """Returns the URL of the proxy for `origin`, None for this machine. Raises ConfigError."""
    from urllib.request import proxy_bypass

    if origin.here or proxy_bypass(f"{origin.host}:{origin.port}"):
        return None
    return _proxy(origin.scheme)


def check_proxies() -> None:
    """Raises ConfigError (bad_proxy) when a proxy that is set cannot be used."""
    for scheme in ("http", "https"):
        _proxy(scheme)


def _proxy(scheme: str) -> str | None:
    from urllib.request import getproxies

    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if origin_of(proxy) and " " not in proxy:
        return proxy
    raise ConfigError(
        "bad_proxy",
        "The proxy address of the environment cannot be used.",
        "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY: http://host:port (SOCKS is not supported).",
    )


def certificates() -> ssl.SSLContext:
    """Makes a context that trusts the right certificates. Raises ConfigError."""
    import ssl

    file, folders = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    context: ssl.SSLContext
    if file:
        try:
            context = ssl.create_default_context(cafile=file)
        except OSError as error:  # ssl.SSLError is one
            why = "no certificate in it" if isinstance(error, ssl.SSLError) else error.strerror
            what = f"SSL_CERT_FILE names {file[:200]!r}, which cannot be used ({str(why).lower()})."
            raise ConfigError("bad_certificates", what, "Correct it, or unset it.") from error
    elif folders:
        context = ssl.create_default_context(capath=folders)
    else:  # those of the system, wherever it keeps them
        import truststore

        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    return context

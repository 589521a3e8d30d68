"""Reads proxies and certificates from the environment as other programs do.

A proxy's address may contain a password, so no error repeats it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from searchloop.agent.errors import ConfigError

if TYPE_CHECKING:
    import ssl

    from searchloop.agent.transport.exchange import Origin

_NO_HOST = frozenset("[]/%@ ")


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
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    try:
        parts = urlsplit(proxy)
        host = parts.hostname if parts.scheme in ("http", "https") and parts.port != 0 else None
        if host and not (_NO_HOST & set(host) or " " in proxy):
            return proxy
    except ValueError:
        pass  # its message holds the address
    raise ConfigError(
        "bad_proxy",
        "The proxy address of the environment cannot be used.",
        "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY: http://host:port (SOCKS is not supported).",
    )


def certificates() -> ssl.SSLContext:
    """Makes a context that trusts the right certificates. Raises ConfigError."""
    import ssl

    file, folders = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file:
        try:
            context = ssl.create_default_context(cafile=file)
        except OSError as error:  # ssl.SSLError is one
            why = "no certificate in it" if isinstance(error, ssl.SSLError) else error.strerror
            raise _unusable("SSL_CERT_FILE", file, str(why)) from error
    elif folders:
        if not any(map(os.path.isdir, folders.split(os.pathsep))):
            raise _unusable("SSL_CERT_DIR", folders, "no such folder")
        context = ssl.create_default_context(capath=folders)
    else:
        context = _system()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _system() -> ssl.SSLContext:
    """Trusts the system's certificates, through `truststore` where OpenSSL cannot find them."""
    import ssl

    paths = ssl.get_default_verify_paths()
    hashed = paths.capath and any(Path(paths.capath).glob("????????.0"))
    if sys.platform not in ("darwin", "win32") and (paths.cafile or hashed):
        return ssl.create_default_context()
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _unusable(name: str, value: str, why: str) -> ConfigError:
    what = f"{name} names {value[:200]!r}, which cannot be used ({why.lower()})."
    return ConfigError("bad_certificates", what, f"Correct {name}, or unset it.")

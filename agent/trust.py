"""Whose certificates count, told in a sentence where the setting that names them is wrong.

SSL_CERT_FILE or SSL_CERT_DIR of the environment replace those of the system, as OpenSSL has it.
The library's exceptions (no such file, no certificate in it) name neither the setting nor a remedy.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent.errors import ConfigError

if TYPE_CHECKING:
    import ssl


def certificates(trust_env: bool = True) -> ssl.SSLContext:
    """A context that trusts them. Raises ConfigError (bad_certificates)."""
    import ssl

    import httpx2

    file = trust_env and os.environ.get("SSL_CERT_FILE")
    folders = trust_env and os.environ.get("SSL_CERT_DIR")
    try:
        context = httpx2.create_ssl_context(trust_env=trust_env)
    except OSError as error:  # ssl.SSLError is one
        if not file:
            raise
        why = "no certificate in it" if isinstance(error, ssl.SSLError) else error.strerror
        raise _unusable("SSL_CERT_FILE", file, str(why)) from error
    if folders and not file and not any(map(os.path.isdir, folders.split(os.pathsep))):
        raise _unusable("SSL_CERT_DIR", folders, "no such folder")
    return context


def _unusable(name: str, value: str, why: str) -> ConfigError:
    return ConfigError(
        "bad_certificates",
        f"{name} names {value[:200]!r}, which cannot be used ({why.lower()}).",
        f"Correct {name}, or unset it.",
    )

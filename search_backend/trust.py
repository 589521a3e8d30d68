"""Whose certificates count for engines and pages, told in a sentence where that setting is wrong.

SSL_CERT_FILE or SSL_CERT_DIR of the environment replace those of the system, as OpenSSL has it.
OpenSSL passes over what it cannot read, and then every server looks like an impostor.
"""

from __future__ import annotations

import os
import ssl
from functools import cache

from search_backend.errors import ConfigError


@cache  # errors are not kept: a file that is there later counts
def system_trust() -> ssl.SSLContext:
    """A context that trusts them, for HTTP/1.1. Raises ConfigError (bad_certificates)."""
    context = ssl.create_default_context()
    file, folders = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file:
        try:
            context.load_verify_locations(file)
        except OSError as error:  # ssl.SSLError is one
            why = "no certificate in it" if isinstance(error, ssl.SSLError) else error.strerror
            raise _unusable("SSL_CERT_FILE", file, str(why)) from error
    elif folders and not any(map(os.path.isdir, folders.split(os.pathsep))):
        raise _unusable("SSL_CERT_DIR", folders, "no such folder")
    context.set_alpn_protocols(["http/1.1"])
    return context


def _unusable(name: str, value: str, why: str) -> ConfigError:
    return ConfigError(
        "bad_certificates",
        f"{name} names {value[:200]!r}, which cannot be used ({why.lower()}).",
        f"Correct {name}, or unset it.",
    )

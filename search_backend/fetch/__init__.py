"""The way to the network: the HTTP client, the check of addresses, and `fetch` for web pages.

Others may import: client, engine_client, fetch, host_check, http, ip_addresses, refresh.
"""

import tomllib
from importlib.resources import files

_WRITTEN = tomllib.loads((files(__package__) / "names.toml").read_text("ascii"))
NAMES = {key: frozenset(words.split()) for key, words in _WRITTEN.items()}

"""Official search APIs of single sites that want no key: one file each.

Such a site is asked by name, where `SEARCH_ENGINES` names it, and when the chain has failed and
`search/router.py` sees that a question is of one of its `kinds`. Their operators ask for a way to
reach whoever sends requests, and for few of them: each engine sends `polite` headers and declares
its rate.
"""

from __future__ import annotations

from functools import partial

from searchloop.search_backend.engines._json import json_engine
from searchloop.search_backend.plugin import Keys, Setting

CONTACT = Setting("SEARCH_CONTACT", "Your mail address or page, sent to the sites without a key")
_PRODUCT = "searchloop/0.1 (personal search client"


def polite(keys: Keys) -> dict[str, str]:
    """Returns the User-Agent that the operators' terms ask for: a product, and a contact if set."""
    contact = "".join(c for c in keys.get(CONTACT.name, "") if "!" <= c <= "~" and c not in "()")
    return {"User-Agent": f"{_PRODUCT}; {contact})" if contact else f"{_PRODUCT})"}


site_engine = partial(json_engine, headers=polite, more=(CONTACT,))

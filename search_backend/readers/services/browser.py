"""A Chromium on this machine, for pages that scripts write: off until its command is set.

It opens the page behind the check of hosts (fetch/browser.py); what its scripts have made is read
as any other page.
"""

from __future__ import annotations

from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.readers import Service

SETTINGS = (
    Setting("SEARCH_BROWSER", "Command of a Chromium for the reader browser, e.g. chromium"),
)
SERVICE = Service("browser", "Your own Chromium", needs=("SEARCH_BROWSER",), settings=SETTINGS)

"""Event streams: a session's log as server-sent events.

`streams` answers requests, `hub` reads a session's log once for all its followers, `view` adds the
rendered text that the page shows. `web.app` imports `Streams` from here; nothing else is needed
outside.

Others may import: streams.
"""

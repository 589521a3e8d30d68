"""Event streams: a session's log as server-sent events.

`streams` answers requests, `view` adds the rendered text that the page shows.

Others may import: streams.
"""

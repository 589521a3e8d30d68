"""Event streams: a session's log as server-sent events.

`streams` answers requests, `view` adds the rendered text that the page shows; `audits` streams the
pages of an audit as they come.

Others may import: audits, streams.
"""

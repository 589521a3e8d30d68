"""The web side: the gate, the JSON API, the event streams, and the page that they serve.

A request passes `gate` (may it come in?) and `app` (which part answers?). `stream` answers for a
session's events; `flask_app` answers for the page and, through `api`, for everything else. `text`
turns a model's Markdown into a tree of nodes. `compose` builds the parts and `serve` runs them.

Others may import: check, compose, gate, listen, serve, text, wsgi.
"""

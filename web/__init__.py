"""The web side: the gate, the JSON API, the event streams, and the page that they serve.

A request passes `gate` (may it come in?) and `app` (which part answers?). `stream` answers for a
session's events; `flask_app` answers for the page and, through `api`, for everything else. `serve`
runs them.

Others may import: gate, listen, serve, wsgi.
"""

if __name__ != "searchloop.web":  # one identity: both names are found from the root
    raise ImportError("web is a part of searchloop: import searchloop.web")

"""The web side: the gate, the JSON API, event streams, and the page they serve.

One request's way: `gate` (may it come in?) -> `app` (who answers?) -> `streams` for followers,
`pages` with `api` for everything else. `markdown` turns what a model wrote into a tree of nodes;
`view` adds those trees to the events that a page follows.
"""

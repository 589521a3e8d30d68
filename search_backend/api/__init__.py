"""The HTTP interface of the search backend: routes, checked requests, OpenAPI.

Others may import: app.
"""

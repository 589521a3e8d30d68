"""The description of the backend is true: what it allows works, and nothing makes it fail."""

from __future__ import annotations

from pathlib import Path

import pytest
import schemathesis

from searchloop.search_backend.api.schemas import document
from searchloop.search_backend.other_apis import find_shapes
from tests.openapi_sample import FEW, MANY, hold
from tests.search_backend.test_shapes import House


def test_the_description_names_every_route(tmp_path: Path) -> None:
    """Each rule of the application is described, and each description has a rule."""
    rules = House(tmp_path).app.url_map.iter_rules()
    served = {
        (method.lower(), rule.rule.replace("<path:path>", "{path}"))
        for rule in rules
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    told = {(m, path) for path, methods in document()["paths"].items() for m in methods}
    assert told == served
    assert {route.path for shape in find_shapes() for route in shape.routes} <= {p for _, p in told}


@pytest.mark.parametrize("examples", [FEW, MANY])
def test_requests_made_from_the_description(tmp_path: Path, examples: int) -> None:
    """No answer of class 5xx, none that is not described, no broken request taken for a good one,
    and no route that forgets the token."""
    app = House(tmp_path, token="a-secret").app
    schema = schemathesis.openapi.from_wsgi(
        "/api/openapi.json", app, headers={"Authorization": "Bearer a-secret"}
    )
    described = {
        f"{method.upper()} {path}"
        for path, methods in document()["paths"].items()
        for method in methods
    }
    assert described - set(hold(schema, examples, "a-secret")) == {"GET /api/openapi.json"}

"""Requests made from an OpenAPI description, and what every answer is held to."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS

# Values that a schema allows and the program refuses for a reason (a domain that is none) are no
# fault, and none of these routes deletes what a later one needs.
LEFT_OUT = frozenset({"positive_data_acceptance", "use_after_free", "ensure_resource_availability"})
FEW = pytest.param(3, marks=pytest.mark.integration)
MANY = pytest.param(100, marks=pytest.mark.torture)


def hold(
    schema: Any, examples: int, token: str, skip: Collection[str] = (), **call: object
) -> list[str]:
    """Sends so many good and so many broken requests to every route; names the routes.

    Fails on an answer of class 5xx, one that the description does not allow, a broken request that
    is accepted, and a route that forgets the token.
    """
    names = [name for name in CHECKS.get_all_names() if name not in LEFT_OUT]
    checks = [CHECKS.get_one(name) for name in names]
    head = {"Authorization": f"Bearer {token}"}
    seen = []
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.label in skip:
            continue
        seen.append(operation.label)
        for mode in schemathesis.GenerationMode:
            if mode is schemathesis.GenerationMode.NEGATIVE and not _can_be_broken(operation):
                continue
            _run(operation.as_strategy(generation_mode=mode), examples, checks, head, call)
    return seen


def _can_be_broken(operation: Any) -> bool:
    return bool(operation.body or operation.query or operation.path_parameters)


def _run(
    strategy: Any, examples: int, checks: list[Callable[..., Any]], head: Any, call: Any
) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],
    )
    @given(case=strategy)
    def sample(case: Any) -> None:
        response = case.call(**call)
        case.validate_response(response, checks=checks, headers=head)

    sample()

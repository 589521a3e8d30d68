"""Asks a server for its list of models, and says in the vendor's words why there is none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers import without_secrets
from searchloop.agent.transport.transport import Transport

LIST_SECONDS = 2.0
T = TypeVar("T")


async def get_list(
    codec: Any, transport: Transport, path: str, read: Callable[[Any], T], seconds: float
) -> T:
    """Returns what `read` makes of the JSON at a path of the codec's endpoint.

    `read` may raise for a wrong shape. Raises AgentError, with no key in its text.
    """
    name = codec.endpoint.name
    try:
        async with (
            asyncio.timeout(seconds),
            transport.post(codec.endpoint.address(path), codec.headers(), b"", "GET") as response,
        ):
            data = await response.read()
            if response.status >= 400:
                raise codec.error(response.status, response.headers, data)
            return read(json.loads(data))
    except TimeoutError as error:
        what = f"{name} did not answer within {seconds:g} s."
        raise ProviderError("timeout", what, "Try again.") from error
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        what = f"{name} did not answer with a list of models."
        raise ProviderError("bad_response", what, "Check its address.") from error
    except ProviderError as error:
        raise without_secrets(codec.explain(error), codec.headers()) from error

"""Which window a request gets.

The window is OLLAMA_CONTEXT_LENGTH, else that of the loaded model; each request names it, because
another number would load the model again. Until it is known nothing is cut: the server is forbidden
to cut, and the sizes in its refusal correct the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers._window import Window
from searchloop.agent.providers.ollama.models import ModelCatalog
from searchloop.agent.types import Finished, Notice, Request

Calls = Literal["native", "envelope"]
_SIZES = re.compile(r"\((\d+) tokens\)[^()]*context size \((\d+)")


@dataclass
class Plan(Window):
    """The token plan of one session; `slipped`: the server could not read its calls."""

    slipped: bool = False

    async def find_window(self, catalog: ModelCatalog, model: str) -> None:
        """Asks the server for the window until it is known."""
        if self.tokens is not None:
            return
        with suppress(ProviderError):
            if catalog.find(model) is None:
                await catalog.look()
            else:
                await catalog.look_loaded()
        self.tokens = catalog.capabilities(model).context

    def planned(self, request: Request) -> Request:
        """See `fit`. The request names its window."""
        window = min(filter(None, (self.tokens, request.context_limit)), default=None)
        try:
            sent = self.fit(request, window, tools=not request.answer_now)
        except ProviderError as error:
            wider = max(16384, 2 * (window or 0))
            remedy = f"{error.remedy.rstrip('.')}, for example OLLAMA_CONTEXT_LENGTH={wider}."
            raise ProviderError(error.code, error.message, remedy) from error
        return replace(sent, context_limit=window)

    def refused(self, error: ProviderError) -> None:
        """Adopts the sizes that the server names in its refusal, else raises the estimate."""
        sizes = _SIZES.search(error.message)
        self.grow(int(sizes[1]) / max(1, self.fitted.tokens) if sizes else 1.3)
        self.tokens = int(sizes[2]) if sizes else self.tokens

    def finished(self, end: Finished) -> Iterator[Finished | Notice]:
        """Yields what the counts tell, and the end with the plan in the message's details."""
        remedy = "Give the model a larger window, for example OLLAMA_CONTEXT_LENGTH=16384."
        yield from self.check(end, self.fitted.tokens, None, remedy)
        yield with_details(
            end,
            prompt_estimate=self.fitted.tokens,
            window=self.tokens,
            shortened=self.fitted.shortened or None,
        )


def with_details(end: Finished, **more: Any) -> Finished:
    """Adds `more` to the details of the message, without values that are None."""
    known = {name: value for name, value in more.items() if value is not None}
    message = replace(end.message, details={**end.message.details, **known})
    return replace(end, message=message)

"""An event that was sent twice, told from two events that look the same.

Events are numbered, so the same bytes twice in a row are a repetition. Some servers give all events
the same number, though; there nothing can be told, and nothing is dropped.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(rb'"sequence_number": ?(\d+)')


class Repeats:
    """`last` is the payload read last, while that matters; `held` are its suspected repetitions."""

    def __init__(self) -> None:
        self.last = b""
        self.held: list[bytes] = []
        self.numbered = True

    def settle(self, payload: bytes) -> list[bytes]:
        """What to read when `payload` equals the last one, or follows a suspected repetition."""
        number, before = _NUMBER.search(payload), _NUMBER.search(self.last)
        if number is not None and before is not None:
            if payload == self.last and not self.held:
                self.held.append(payload)
                return []
            if int(number[1]) > int(before[1]):
                self.held = []
                return [payload]
        found = [*self.held, payload]
        self.numbered, self.held, self.last = False, [], b""
        return found

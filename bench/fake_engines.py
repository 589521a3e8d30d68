"""Five search engines on one port that behave as told: python -m bench.fake_engines [--delay MS]

Each gives 20 results, in the shape of a real API that has no rate of its own.
`POST /_mood {"ENGINE": "well|hang|slow|fail|limit|lie|cut"}` changes an engine; `GET /_count` tells
how often each was asked since the last time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections import Counter
from urllib.parse import parse_qs, urlsplit

ENGINES = ("tavily", "searxng", "perplexity", "exa", "ollama")
WORDS = (
    "A long description of the page as search engines give it, about two lines of text, with the "
    "searched words in it somewhere near the end of the text."
)
SPELLINGS = [
    "https://spell.example/%s",
    "http://spell.example/%s/",
    "https://SPELL.example/%s",
    "https://www.spell.example:443/%s",
    "https://spell.example/%s?utm_source=x#part",
]


class Fakes:
    """What the five engines do, and what they were asked."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.moods: dict[str, str] = {}
        self.counts: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                method, target = head.split(" ", 2)[:2]
                length = next(
                    (int(line[15:]) for line in head.split("\r\n") if line[:15].lower() == _LENGTH),
                    0,
                )
                body = await reader.readexactly(length)
                status, extra, answer = await self.answer(method, target, body)
                if status == _CUT:
                    return
                writer.write(
                    f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\n{extra}"
                    f"content-length: {len(answer)}\r\n\r\n".encode()
                    + answer
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, method: str, target: str, body: bytes) -> tuple[int, str, bytes]:
        """Status, more headers, body."""
        parts = urlsplit(target)
        engine = parts.path.split("/")[1]
        if engine == "_mood":
            self.moods = json.loads(body)
            return 200, "", b"{}"
        if engine == "_count":
            counts, self.counts = self.counts, Counter()
            return 200, "", json.dumps(counts).encode()
        self.counts[engine] += 1
        query = json.loads(body)["query"] if body else parse_qs(parts.query)["q"][0]
        mood = self.moods.get(engine, "well")
        await asyncio.sleep({"hang": 30.0, "slow": 2.0}.get(mood, self.delay))
        if mood == "cut":
            return _CUT, "", b""
        if mood == "lie":
            return 200, "", b"<html><title>Just a moment...</title>"
        if mood == "fail":
            return 500, "", b"{}"
        if mood == "limit":
            return 429, "retry-after: 7\r\n", b"{}"
        return 200, "", json.dumps(shaped(engine, addresses(engine, query))).encode()


_CUT = 0  # no status: the connection ends without an answer
_LENGTH = "content-length:"


def addresses(engine: str, query: str) -> list[str]:
    """The 20 addresses that `engine` finds: of 4 pages if the query begins with "spell"."""
    words = query.replace(" ", "-")
    if words.startswith("spell"):
        return [spelling % n for n in range(4) for spelling in SPELLINGS]
    return [f"https://{engine}.example/{words}/{n}" for n in range(20)]


def shaped(engine: str, found: list[str]) -> dict[str, object]:
    """As that engine writes them."""
    text = {"perplexity": "snippet", "exa": "text"}.get(engine, "content")
    rows = [{"url": url, "title": f"A title of {url}", text: WORDS} for url in found]
    return {"results": rows}


async def _main(delay: float) -> None:
    server = await asyncio.start_server(Fakes(delay).serve, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Whoever started this holds its standard input; when that ends, so does this.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)  # with connections that hang on purpose, an orderly end would only complain


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=50.0)
    asyncio.run(_main(parser.parse_args().delay / 1000))

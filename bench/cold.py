"""The shortest program that asks a model something, for the time from its start to its request."""

from __future__ import annotations

import asyncio
import json
import sys

import httpx2

from bench.scenarios import MODEL


async def ask(url: str) -> int:
    """One question; the number of bytes that came back."""
    payload = {"model": MODEL, "input": [{"role": "user", "content": "Hi."}], "stream": True}
    headers = {"authorization": "Bearer bench", "content-type": "application/json"}
    size = 0
    async with (
        httpx2.AsyncClient() as client,
        client.stream("POST", url, content=json.dumps(payload), headers=headers) as response,
    ):
        async for data in response.aiter_raw():
            size += len(data)
    return size


if __name__ == "__main__":
    print(asyncio.run(ask(f"{sys.argv[1]}/responses")))

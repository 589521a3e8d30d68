"""The MCP SDK for Python: our tools over HTTP."""

import asyncio
from contextlib import suppress

import httpx2
from kit import try_all
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def ask(at, question, search=False, **more):
    return asyncio.run(call(at, question, search))


async def call(at, question, search=False):
    mode = "local" if search else "off"
    arguments = {"question": question, "model": at.model, "search": mode}
    headers = {"Authorization": f"Bearer {at.key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        over = streamable_http_client(f"{at.base}/mcp", http_client=http)
        async with Client(over) as client:
            result = await client.call_tool("ask", arguments)
    if result.is_error:
        raise RuntimeError(result.content[0].text)
    told = result.structured_content
    return told["answer"], 1, [c["url"] for c in told["citations"]]


def leave(at, question):
    async def soon():
        await asyncio.wait_for(call(at, question), 1)

    with suppress(TimeoutError):
        asyncio.run(soon())


try_all("mcp", ask, leave, "stream", "tools")

"""A server made with the Python SDK, as its users write them: `sdk_server.py stdio|http`."""

from __future__ import annotations

import base64
import sys
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve, Sample
from mcp.types import ImageContent, ResourceLink, SamplingMessage, TextContent
from pydantic import BaseModel, Field

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGM4AQAAygDJmcpdfgAAAABJRU5ErkJggg=="
)

server = MCPServer("sdk", instructions="Adds numbers.")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def count(to: int, context: Context) -> str:
    """Count, and tell how far it is."""
    for number in range(to):
        await context.report_progress(number, to)
    return f"counted to {to}"


@server.tool()
async def grow(context: Context) -> str:
    """Have one tool more from now on."""
    server.add_tool(lambda: "new", name="grown", description="It is new.")
    await context.notify_tools_changed()
    return "grown"


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it cannot be done")


@server.tool()
def draw() -> list[Any]:
    """Draw a pixel, and name a file that tells of it."""
    pixel = ImageContent(type="image", mime_type="image/png", data=PIXEL)
    broken = ImageContent(type="image", mime_type="image/png", data=PIXEL[8:40])
    link = ResourceLink(type="resource_link", name="story", uri="story://pixel")
    return [pixel, broken, link]


@server.resource("story://pixel")
def story() -> str:
    """How it came to be."""
    return "It was drawn at noon."


@server.resource("story://picture", mime_type="image/png")
def picture() -> bytes:
    """The same pixel."""
    return base64.b64decode(PIXEL)


@server.prompt()
def review(code: str, style: str = "kind") -> str:
    """Ask for a review."""
    return f"Review {code}, {style}.\x1b[31m"


class Wish(BaseModel):
    """What is asked."""

    dish: str = Field(description="What you would like")
    portions: int = 1


def asked() -> Elicit[Wish]:
    """The question."""
    return Elicit("What may it be?", Wish)


@server.tool()
async def order(wish: Annotated[Wish, Resolve(asked)]) -> str:
    """Order a dish, which the user is asked for."""
    return f"ordered {wish.portions} {wish.dish}"


def dreamt() -> Sample:
    """A prompt for the user's model."""
    words = TextContent(type="text", text="Dream.")
    return Sample([SamplingMessage(role="user", content=words)], max_tokens=10)


@server.tool()
async def dream(words: Annotated[Any, Resolve(dreamt)]) -> str:
    """Let the user's model dream."""
    return str(words)


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        import uvicorn

        uvicorn.run(server.streamable_http_app(), port=int(sys.argv[2]), log_level="error")

"""pydantic-ai, by Responses."""

import asyncio

from kit import get_weather, try_all
from pydantic_ai import Agent
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.providers.openai import OpenAIProvider

RAW = {"openai_include_raw_annotations": True}


def agent_of(at, search=False, tool=False):
    provider = OpenAIProvider(base_url=f"{at.base}/v1", api_key=at.key)
    model = OpenAIResponsesModel(at.model, provider=provider)
    able = {"capabilities": [NativeTool(WebSearchTool())]} if search else {}
    return Agent(model, tools=[get_weather] if tool else [], model_settings=RAW, **able)


async def asked(at, question, stream=False, search=False, tool=False):
    agent = agent_of(at, search, tool)
    if stream:
        async with agent.run_stream(question) as run:
            said = [piece async for piece in run.stream_text(delta=True, debounce_by=None)]
        text, messages = "".join(said), run.all_messages()
    else:
        run = await agent.run(question)
        text, said, messages = run.output, [1], run.all_messages()
    parts = [part for message in messages for part in message.parts]
    details = [getattr(part, "provider_details", None) or {} for part in parts]
    notes = [note for d in details for note in d.get("annotations", ())]
    return text, len(said), [note["url"] for note in notes]


def ask(at, question, **more):
    return asyncio.run(asked(at, question, **more))


def leave(at, question):
    async def begin():
        async with agent_of(at).run_stream(question) as run:
            async for _ in run.stream_text(delta=True, debounce_by=None):
                break

    asyncio.run(begin())


try_all("pydantic-ai-slim", ask, leave)

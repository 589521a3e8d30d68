"""openai-agents, by Responses."""

import asyncio

import agents
import openai
from kit import get_weather, try_all

agents.set_tracing_disabled(True)


def agent_of(at, search=False, tool=False):
    client = openai.AsyncOpenAI(base_url=f"{at.base}/v1", api_key=at.key, max_retries=0)
    tools = [agents.WebSearchTool()] if search else []
    if tool:
        tools.append(agents.function_tool(get_weather))
    model = agents.OpenAIResponsesModel(at.model, client)
    return agents.Agent("tried", model=model, tools=tools)


async def asked(at, question, stream=False, search=False, tool=False):
    agent, pieces = agent_of(at, search, tool), 1
    if stream:
        run = agents.Runner.run_streamed(agent, question)
        raw = [event.data async for event in run.stream_events() if event.type.startswith("raw")]
        pieces = sum(event.type == "response.output_text.delta" for event in raw)
    else:
        run = await agents.Runner.run(agent, question)
    items = [item.raw_item for item in run.new_items if item.type == "message_output_item"]
    notes = [note for item in items for part in item.content for note in part.annotations]
    return run.final_output, pieces, [note.url for note in notes]


def ask(at, question, **more):
    return asyncio.run(asked(at, question, **more))


def leave(at, question):
    async def begin():
        run = agents.Runner.run_streamed(agent_of(at), question)
        async for event in run.stream_events():
            if event.type.startswith("raw"):
                break
        run.cancel()
        async for _ in run.stream_events():
            pass

    asyncio.run(begin())


try_all("openai-agents", ask, leave)

"""openai-python, Responses."""

import json

import openai
from kit import WEATHER, get_weather, try_all


def create(at, asked, **more):
    client = openai.OpenAI(base_url=f"{at.base}/v1", api_key=at.key, max_retries=0)
    return client.responses.create(model=at.model, input=asked, **more)


def ask(at, question, stream=False, search=False, tool=False):
    tools = [{"type": "web_search"}] if search else []
    if tool:
        tools.append({"type": "function", "name": "get_weather", "parameters": WEATHER})
    pieces = 1
    if stream:
        events = list(create(at, question, tools=tools, stream=True))
        pieces = sum(event.type == "response.output_text.delta" for event in events)
        whole = events[-1].response
    else:
        whole = create(at, question, tools=tools)
    while calls := [item for item in whole.output if item.type == "function_call"]:
        results = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": get_weather(**json.loads(call.arguments)),
            }
            for call in calls
        ]
        whole = create(at, results, tools=tools, previous_response_id=whole.id)
    said = [part for item in whole.output if item.type == "message" for part in item.content]
    return whole.output_text, pieces, [note.url for part in said for note in part.annotations]


def leave(at, question):
    stream = create(at, question, stream=True)
    next(iter(stream))
    stream.close()


try_all("openai", ask, leave)

"""openai-python, Chat Completions."""

import json

import openai
from kit import WEATHER, get_weather, try_all


def create(at, messages, **more):
    client = openai.OpenAI(base_url=f"{at.base}/v1", api_key=at.key, max_retries=0)
    return client.chat.completions.create(model=at.model, messages=messages, **more)


def ask(at, question, stream=False, search=False, tool=False):
    more = {"web_search_options": {}} if search else {}
    if tool:
        function = {"name": "get_weather", "parameters": WEATHER}
        more["tools"] = [{"type": "function", "function": function}]
    messages = [{"role": "user", "content": question}]
    if stream:
        deltas = [
            p.choices[0].delta for p in create(at, messages, stream=True, **more) if p.choices
        ]
        said = [d.content for d in deltas if d.content]
        notes = [n for d in deltas for n in (d.model_extra or {}).get("annotations", ())]
        return "".join(said), len(said), [n["url_citation"]["url"] for n in notes]
    message = create(at, messages, **more).choices[0].message
    while message.tool_calls:
        messages.append(message)
        for call in message.tool_calls:
            result = get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        message = create(at, messages, **more).choices[0].message
    return message.content, 1, [n.url_citation.url for n in message.annotations or ()]


def leave(at, question):
    stream = create(at, [{"role": "user", "content": question}], stream=True)
    next(iter(stream))
    stream.close()


try_all("openai", ask, leave)

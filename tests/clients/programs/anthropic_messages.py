"""anthropic-python."""

import anthropic
from kit import WEATHER, get_weather, try_all


def client(at):
    return anthropic.Anthropic(base_url=at.base, api_key=at.key, max_retries=0).messages


def ask(at, question, stream=False, search=False, tool=False):
    tools = [{"type": "web_search_20250305", "name": "web_search"}] if search else []
    if tool:
        tools.append({"name": "get_weather", "input_schema": WEATHER})
    messages = [{"role": "user", "content": question}]
    given = {"model": at.model, "max_tokens": 500, "messages": messages, "tools": tools}
    pieces = 1
    if stream:
        with client(at).stream(**given) as events:
            pieces = len(list(events.text_stream))
            whole = events.get_final_message()
    else:
        whole = client(at).create(**given)
    while whole.stop_reason == "tool_use":
        results = [
            {"type": "tool_result", "tool_use_id": b.id, "content": get_weather(**b.input)}
            for b in whole.content
            if b.type == "tool_use"
        ]
        messages += [{"role": "assistant", "content": whole.content}]
        messages += [{"role": "user", "content": results}]
        whole = client(at).create(**given)
    texts = [block for block in whole.content if block.type == "text"]
    cited = [note.url for block in texts for note in block.citations or ()]
    return "".join(block.text for block in texts), pieces, cited


def leave(at, question):
    messages = [{"role": "user", "content": question}]
    stream = client(at).create(model=at.model, max_tokens=9, messages=messages, stream=True)
    next(iter(stream))
    stream.close()


try_all("anthropic", ask, leave)

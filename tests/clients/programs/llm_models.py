"""`llm` by Simon Willison, with the plugin for OpenAI's API that it brings."""

import gc

import llm
from kit import get_weather, try_all
from llm.default_plugins.openai_models import Chat


def model_of(at, search=False):
    name = at.model + ("+web" if search else "")
    model = Chat("tried", model_name=name, api_base=f"{at.base}/v1", supports_tools=True)
    model.key = at.key
    return model


def ask(at, question, stream=False, search=False, tool=False):
    model = model_of(at, search)
    if tool:
        chain = model.conversation().chain(question, tools=[llm.Tool.function(get_weather)])
        return chain.text(), 1, []
    response = model.prompt(question, stream=stream)
    said = [piece for piece in response if piece]
    message = (response.response_json or {}).get("choices", [{}])[0].get("message", {})
    notes = message.get("annotations") or ()
    return "".join(said), len(said), [n["url_citation"]["url"] for n in notes]


def leave(at, question):
    pieces = iter(model_of(at).prompt(question, stream=True))
    next(pieces)
    pieces.close()
    del pieces
    gc.collect()  # it has no way to close the stream beneath but to forget it


try_all("llm", ask, leave)

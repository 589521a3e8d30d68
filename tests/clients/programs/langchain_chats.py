"""How a chat model of LangChain is asked, whoever made it."""

from kit import get_weather
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool as as_tool


def ways(model_of, search_tool):
    """Returns `ask` and `leave` of the kit."""
    weather = as_tool(get_weather)

    def ask(at, question, stream=False, search=False, tool=False):
        tools = [search_tool] if search else [weather] if tool else []
        model = model_of(at)
        model = model.bind_tools(tools) if tools else model
        messages, pieces = [HumanMessage(question)], 1
        if stream:
            chunks = list(model.stream(messages))
            pieces = sum(bool(text_of(chunk)) for chunk in chunks)
            message = sum(chunks[1:], chunks[0])
        else:
            message = model.invoke(messages)
        while message.tool_calls:
            messages += [message, *(weather.invoke(call) for call in message.tool_calls)]
            message = model.invoke(messages)
        blocks = message.content if isinstance(message.content, list) else []
        notes = [n for b in blocks for n in b.get("annotations") or b.get("citations") or ()]
        return text_of(message), pieces, [n["url"] for n in notes if "url" in n]

    def leave(at, question):
        chunks = model_of(at).stream([HumanMessage(question)])
        next(chunks)
        chunks.close()

    return ask, leave


def text_of(message):
    """Returns the text of a message, which is a property in newer versions."""
    return str(message.text)

"""LiteLLM, by Chat Completions."""

import litellm
from kit import chat_ways, try_all


def create(at, messages, **more):
    place = {"model": f"openai/{at.model}", "api_base": f"{at.base}/v1", "api_key": at.key}
    return litellm.completion(messages=messages, num_retries=0, max_retries=0, **place, **more)


def leave(at, question):
    stream = create(at, [{"role": "user", "content": question}], stream=True)
    next(iter(stream))
    stream.completion_stream.close()


try_all("litellm", chat_ways(create), leave)

"""openai-python, Chat Completions."""

import openai
from kit import chat_ways, try_all


def create(at, messages, **more):
    client = openai.OpenAI(base_url=f"{at.base}/v1", api_key=at.key, max_retries=0)
    return client.chat.completions.create(model=at.model, messages=messages, **more)


def leave(at, question):
    stream = create(at, [{"role": "user", "content": question}], stream=True)
    next(iter(stream))
    stream.close()


try_all("openai", chat_ways(create), leave)

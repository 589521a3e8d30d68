"""langchain-openai, by Responses."""

import langchain_chats
from kit import try_all
from langchain_openai import ChatOpenAI


def model_of(at):
    place = {"base_url": f"{at.base}/v1", "api_key": at.key, "max_retries": 0}
    return ChatOpenAI(
        model=at.model, use_responses_api=True, output_version="responses/v1", **place
    )


ask, leave = langchain_chats.ways(model_of, {"type": "web_search"})
try_all("langchain-openai", ask, leave)

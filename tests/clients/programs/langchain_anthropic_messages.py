"""langchain-anthropic."""

import langchain_chats
from kit import try_all
from langchain_anthropic import ChatAnthropic


def model_of(at):
    return ChatAnthropic(model=at.model, base_url=at.base, api_key=at.key, max_retries=0)


SEARCH = {"type": "web_search_20250305", "name": "web_search"}
ask, leave = langchain_chats.ways(model_of, SEARCH)
try_all("langchain-anthropic", ask, leave)

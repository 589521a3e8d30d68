"""The agent: a ReAct loop with an honest web-search switch. It knows neither HTTP servers nor SQL.

Others may import: bare_agent, calls, errors, guard, log, loop, mcp, observe, providers, run,
search, settings, text, tools, transport, types, verdicts.
"""

if __name__ != "searchloop.agent":  # one identity: both names are found from the root
    raise ImportError("agent is a part of searchloop: import searchloop.agent")

__version__ = "0.1.0"

"""The agent: a ReAct loop with an honest web-search switch. It knows neither HTTP servers nor SQL.

Others may import: bare_agent, calls, errors, guard, log, loop, mcp, observe, providers, run,
search, settings, text, tools, transport, types, verdicts.
"""

__version__ = "0.1.0"

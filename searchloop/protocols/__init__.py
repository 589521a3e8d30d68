"""What other programs ask of searchloop, each by a protocol of its own.

Others may import: chat_completions, fields, mcp, messages, programs, responses, runs, tools.
"""

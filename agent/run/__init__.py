"""Runs: each answers one question of a session and writes all it does to the event log.

Others may import: prices, prompts, question, runner, summary, takeover, undo.
"""

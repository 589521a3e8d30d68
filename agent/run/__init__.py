"""Runs: each answers one question of a session and writes all it does to the event log.

Others may import: check_sources, check_with, prices, prompts, question, recorder, runner, summary,
takeover, undo.
"""

"""Compares a claim with the text of its source.

Others import `check` and `Verdict` from `agent.verdicts.check`, `Page` from `agent.verdicts.page`,
and what people read from `agent.verdicts.words`. All is pure: no network, clock or file.

Others may import: check, claims, page, text, vetoes, words.
"""

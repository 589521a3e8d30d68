"""Compares a claim with the text of its source.

Others import `check` and `Verdict` from `agent.verdicts.check`, `Page` from `agent.verdicts.page`,
and `sentences` from `agent.verdicts.text`. Everything here is pure: no network, clock or file.

Others may import: check, language, page, text.
"""

"""Compares a claim with the text of its source.

Others import `check` and `Verdict` from `agent.verdicts.check`, and `Page` from
`agent.verdicts.page`. All is pure: no network, clock or file.

Others may import: check, page, text, vetoes.
"""

"""Web search as the agent sees it: the switch, the source table, citations.

Others may import: answer_markdown, citations, claims, mark_shapes, marks, source_numbers, switch,
vendor_marks, verdict_words.
"""

"""Web search as the agent sees it: the switch, the source table, citations.

Others may import: citations, options, source_numbers, switch, vendor_marks.
"""

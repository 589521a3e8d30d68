"""Pure functions on the text of pages and results: cleaning, slices, passages.

Others may import: clean, passages, ranking, slices.
"""

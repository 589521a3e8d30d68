"""Keeps answers of engines and pages in memory for a while.

Others may import: kept, pages.
"""

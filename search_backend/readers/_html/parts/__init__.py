"""Parts of a text that need rules of their own: formulas, code, tables, lists, raised characters.

Others may import: code, complete, inline, places, tables, visible.
"""

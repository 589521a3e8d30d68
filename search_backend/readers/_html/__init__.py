"""Parts of the HTML reader: each does one step from markup to text.

Others may import: about, blocks, bounds, choose, features, markdown, parts, text, whole.
"""

"""Reads the tool calls that models write: schemas, arguments, and calls printed as text.

Others may import: arguments, as_text, schema.
"""

"""Reads what models write as JSON: calls of tools, their schemas, and answers of a given form.

Others may import: arguments, as_text, caller, instructions, schema.
"""

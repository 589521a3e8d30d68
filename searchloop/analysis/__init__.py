"""Analysis of text that the agent and the search backend share: pure functions over strings.

It imports nothing of the other packages, and is the only part of `searchloop` that they import.

Others may import: addresses, characters, language, redaction, schemas, terms,
words.
"""

"""Analysis of text that the agent and the search backend share: pure functions over strings;
and `plugins` and `told`, which both sides have.

It imports nothing of the other packages, and is the only part of `searchloop` that they import.

Others may import: addresses, characters, dates, language, plugins, redaction, schema_check,
schemas, secret_files, sentences, terms, told, words.
"""

"""The Responses API, which several vendors speak.

A provider brings head and tail of its request, the names of its settings, and what it reports in
its own way. Others may import: request, response.

Spec: https://platform.openai.com/docs/api-reference/responses
"""

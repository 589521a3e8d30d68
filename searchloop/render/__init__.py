"""Text that a model wrote, made safe to show: as a tree of nodes, as HTML, as Markdown.

Others import `markdown.render`, `tree` (nodes, known links, citation marks) and `export.EXPORTS`.
Nothing here knows HTTP.

Others may import: export, markdown, shared_page, tree, words.
"""

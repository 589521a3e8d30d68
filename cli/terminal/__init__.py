"""What the command line does with the terminal and the pipes that it finds.

Others may import: completions, examples, line_editor, markdown,
pipes.
"""

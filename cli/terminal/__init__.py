"""What the command line does with the terminal and the pipes that it finds.

Others may import: examples, line_editor, markdown,
pipes.
"""

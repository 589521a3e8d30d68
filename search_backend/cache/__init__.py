"""Keeps answers of engines and pages in a file that may be lost, or in memory.

Others may import: chats, disk, kept, pages.
"""

"""Keeps answers of engines and pages in memory and in a file that may be lost.

Others may import: chats, disk, pages, results.
"""

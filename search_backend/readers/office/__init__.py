"""Documents of office programs and books: one reader a file, over `_archive`."""

"""Our speed beside a bare HTTP client, in one run: `python -m bench`."""

"""Opening a page: `open_page` asks `reading`, which asks `fetch` or a service.

`workers` reads documents, in processes of their own.

Others may import: open_page, reading, service_calls, workers.
"""

"""The way to the network: the HTTP client, the guard over addresses, and `fetch` for web pages.

Others may import: browser, client, engine_client, fetch, host_check, http, ip_addresses.
"""

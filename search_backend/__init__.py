"""Search engines and web pages behind a small HTTP API; knows nothing of agents or models."""

"""Readers elsewhere, apart from `readers`: to list them loads no reader of documents."""

"""Compares the order bucket, our ledger and the books of the provider; explains; repairs."""

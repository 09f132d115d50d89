"""Backstop: gives executions that no Catch could see to the failure queue."""

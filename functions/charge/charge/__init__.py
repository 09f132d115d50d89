"""Charges one order at the payment provider: once, however often it is called."""

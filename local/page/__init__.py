"""The counting-house: a page that shows both ledgers side by side, live."""

"""`python -m local`."""

from local.cli import main

main()

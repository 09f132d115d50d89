"""`python -m local`."""

import sys

try:
    from local.cli import main

    main()
except KeyboardInterrupt:  # also while the imports are under way
    sys.exit(130)

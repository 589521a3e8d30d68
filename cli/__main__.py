"""`python -m cli` is `searchloop`."""

from cli.main import main

raise SystemExit(main())

"""`python -m cli` is `searchloop`."""

from searchloop.cli.main import main

raise SystemExit(main())

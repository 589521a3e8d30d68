# Every target first makes .venv complete, which costs nothing when it is.
# Name another Python >= 3.11, or where the page is served: make run PYTHON=python3.12 PORT=8322
TRY := python3 python3.14 python3.13 python3.12 python3.11
NEW := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON := $(shell for p in $(TRY); do $$p -c '$(NEW)' 2>/dev/null && echo $$p && exit; done; echo python3)
OLD := searchloop: Python 3.11 or newer is needed, and $(PYTHON) is older or missing.
NEW_ENOUGH = $(PYTHON) -c '$(NEW)' 2>/dev/null || { echo "$(OLD) $(NAME_ONE)" >&2; exit 1; }
NAME_ONE := Install one, or name another: make run PYTHON=python3.12
BIN := .venv/bin
CODE := agent cli scripts search_backend searchloop web
export PYTHONDONTWRITEBYTECODE := # compiled once, not at each start and each test

.PHONY: run test integration check docs bench figures torture clients real pythons readme lock clean dev node

run: # start the page and open it in a browser, if there is one
	@$(NEW_ENOUGH)
	@$(PYTHON) scripts/install.py run
	@$(BIN)/searchloop serve --open $(if $(PORT),--port $(PORT))

test: dev # what needs nothing but Python and a browser, in three minutes; skips are listed
	@$(BIN)/python -m pytest -rs -n auto --dist worksteal

integration: dev node # the same promises beside real servers: PostgreSQL, MCP servers, axe in the page
	@$(BIN)/python -m pytest -rs -n auto --dist worksteal -m "integration and not torture"

check: dev node # style, form and types, also of the page, the image, compose and .github
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/ruff check -q --isolated --preview --select PLW1514 $(CODE) # Windows has code pages
	@tests/node/node_modules/.bin/biome ci --colors=off --error-on-warnings
	@$(BIN)/hadolint Containerfile
	@$(BIN)/check-jsonschema -q --builtin-schema vendor.compose-spec compose.yaml
	@$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/check-jsonschema -q --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	@$(BIN)/mypy

docs: dev # the documentation site, build/site/index.html; a warning is an error
	@$(BIN)/sphinx-build -q -E -W --keep-going -d build/doctrees docs build/site

bench: dev # our speed beside a bare HTTP client, in one run
	@$(BIN)/python -m bench
figures: dev # repeat every figure of README and docs; DATA=DIR holds the public data sets
	@$(BIN)/python -m bench.figures $(DATA)
torture: dev # the suite with the slow tests in it and many more generated examples
	@$(BIN)/python -m pytest -rs -m "not clients and not ollama and not real" --hypothesis-profile=torture
clients: dev # clients of other makers at our server; writes what came of it into the documents
	@PYTHON=$(PYTHON) tests/clients/try
real: dev # the openai-chat provider on a real llama.cpp server and model; gets up to 226 MB once
	@$(BIN)/python scripts/real.py
pythons: # a sample of the tests on every Python of this machine
	@$(PYTHON) scripts/pythons.py
readme: dev # the examples of the README and docs, which are in the tests too
	@$(BIN)/python -m pytest -q -n auto -m "integration or not integration" tests/docs/test_examples.py
lock: # pin the newest allowed versions; commit what it writes
	@$(PYTHON) scripts/lock.py
clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis tests/node/node_modules tests/clients/node/node_modules
dev:
	@$(NEW_ENOUGH)
	@$(PYTHON) scripts/install.py dev
node: tests/node/node_modules/.package-lock.json # what only checks and tests need of npm
tests/node/node_modules/.package-lock.json: tests/node/package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing: install Node.js 20 or newer with npm"; exit 1; }
	@npm ci --prefix tests/node --loglevel error --no-fund --no-audit --no-progress --fetch-retries 5 && touch $@

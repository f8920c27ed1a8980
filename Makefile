# `make` lists the targets from the `##` comments beside them. Needs Python 3.11 or later, pip and make.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check format lint types soak bench fmt clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1|\2/p' Makefile \
	  | while IFS='|' read -r target does; do printf '  make %-6s %s\n' "$$target" "$$does"; done

demo: $(STAMP) ## Dispatch a GitHub issues.opened delivery through Temporal, with the Web UI
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/github-triage/demo.sh

# Most tests wait for servers and processes: two files at a time halve the wait.
test: $(STAMP) ## Run the tests, TESTS="tests/manifest -k match" for some of them
	@$(BIN)/pytest -n 2 --dist loadfile $(TESTS)

check: format lint types test ## Everything CI runs: format, lint, types, the wheel and the tests

format: $(STAMP)
	@$(BIN)/ruff format --check .

lint: $(STAMP)
	@$(BIN)/ruff check .

types: $(STAMP)
	@$(BIN)/mypy

soak: $(STAMP) ## Run the tests that take minutes
	@$(BIN)/pytest -m soak $(TESTS)

bench: $(STAMP) ## Measure appends, dispatches and claims a second on this machine
	@$(BIN)/python benchmarks/eventlog.py
	@$(BIN)/python benchmarks/dispatch.py
	@$(BIN)/python benchmarks/queues.py --quick
	@$(BIN)/python benchmarks/drain.py --quick
	@$(BIN)/python benchmarks/gates.py --quick

fmt: $(STAMP) ## Format the code and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean: ## Remove the virtual environment, caches and what the demo left
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis examples/github-triage/.harn

# The environment is made once, and brought up to date when what it is made from changes.
# pip is replaced first: the one that comes with Python 3.11 knows no dependency groups.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is no Python 3.11 or later. Name one that is: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv || { \
	  echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --upgrade pip
	@$(BIN)/python -m pip install -q -c constraints.txt --build-constraint constraints.txt --group dev -e .
	@touch $(STAMP)

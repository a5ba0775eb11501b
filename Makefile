# make demo    the main job on an embedded mailbox, in seconds
# make test    the test suite
# make check   lint, format, types
# make bench   measurements beside the plain alternatives
#
# Each makes its environment in .venv when it is missing or older than pyproject.toml; offline afterwards.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pip asks rustc for its version, and rustup would leave a file in HOME for that.
export RUSTUP_HOME ?= $(CURDIR)/.venv/rustup

.PHONY: help demo test check bench .venv
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# make/make/p' Makefile

demo: $(STAMP)
	@$(BIN)/mailgateway demo

test: $(STAMP)
	@$(BIN)/python -m twisted.trial tests

check: $(STAMP)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

bench: $(STAMP)
	@for measure in bench/[a-z]*.py; do echo "== $$measure"; $(BIN)/python "$$measure" || exit 1; done

.venv: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "mailgateway needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Making the environment in .venv (once; about a minute) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --editable '.[postgres]' --group dev
	@touch $@

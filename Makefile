# make study   the main job: train the mini study, write its report, print the findings
# make test    every test
# Both make the virtual environment in .venv first and do nothing twice.

PYTHON ?= python3
BIN := .venv/bin
STUDY := studies/architectures-mini

.PHONY: study test check docs clean

study: .venv/study
	@$(BIN)/isoloss run architectures --scale mini --out $(STUDY)
	@$(BIN)/isoloss report $(STUDY)

test: .venv/dev
	$(BIN)/python -m pytest

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyrefly check

# The lock holds every version; hashes of the installed files are pip's to check.
.venv/study: pyproject.toml requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --editable ".[train]"
	@touch $@

.venv/dev: .venv/study
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --editable ".[train,dev]"
	@touch $@

clean:
	rm -rf .venv build dist

# make study   the main job: train the mini study, write its report, print the findings
# make test    every test
# Both make the virtual environment in .venv first and do nothing twice.

PYTHON ?= python3
BIN := .venv/bin
STUDY := studies/architectures-mini

.PHONY: study test check lock clean

study: .venv/study
	@$(BIN)/isoloss run architectures --scale mini --out $(STUDY)
	@$(BIN)/isoloss report $(STUDY)

# Four files at a time, each whole on one worker: trained models, a browser and a server are made once a file.
# On two cores each of them waits for a part of its time, for a browser, a queue or a killed process. What waits
# longest begins first, beside all others. The other files go by name: by their count of tests, as is usual, the
# longest would come last. Commands start hundreds of times: with their bytecode written they start faster.
test: .venv/dev
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder \
		tests/studies/test_clusters.py tests

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyrefly check

# Pip compiles on one core; some packages hold templates of code, which do not compile.
COMPILE := $(BIN)/python -m compileall -qq -j 0 .venv/lib || true

# The lock holds every version that the checks ran with; pip takes it as constraints.
.venv/study: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "isoloss needs Python 3.11 or newer; name one: make study PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --constraint requirements.lock --editable ".[train]"
	@$(COMPILE)
	@touch $@

.venv/dev: .venv/study
	$(BIN)/python -m pip install --quiet --no-compile --constraint requirements.lock \
		--editable ".[train,ray,slurm,dev]"
	@$(COMPILE)
	@touch $@

lock: .venv/dev
	@echo "# Versions that every check ran with; pip's constraints. Made by: make lock" > requirements.lock
	@$(BIN)/python -m pip freeze --exclude-editable | sed 's/+cpu//' >> requirements.lock

clean:
	rm -rf .venv build dist

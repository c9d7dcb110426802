# Everything a newcomer and CI start. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

NODE := node --import tsx
PACKAGES := node_modules/.package-lock.json
# Any file buf makes tells when it last ran.
GENERATED := src/gen/marina/options/v1/options_pb.ts
PROTOS := $(shell find proto -name '*.proto') buf.yaml buf.gen.yaml

# What `make build` makes last of dist/, and of what, in addition to what is generated. Folders are newer when a file of theirs is gone.
BUILT := dist/package.json
SOURCES := $(shell find src migrations docs \( -path src/gen -o -path src/sandbox -o -path src/simulator -o -path src/tools \) -prune -o -print) \
CHANGELOG.md LICENSE .npmrc tsconfig.json tsconfig.build.json package.json package-lock.json

# Made of the protos, their comments and src/site.
OPENAPI := src/gen/openapi.json

.PHONY: help run demo drill verify-ledger test test-all test-fault test-fix test-cluster test-scale mutants check bench build generate openapi config broker-check clean node

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

run: $(PACKAGES) $(GENERATED) ## Start a sandbox with everything it needs; Ctrl-C stops it
	@exec $(NODE) src/sandbox/run.ts

demo: $(PACKAGES) $(GENERATED) ## Tour everything a partner does, against the running sandbox; BROKER=fix shows an order over FIX
	@case '$(BROKER)' in '') exec $(NODE) src/sandbox/demo.ts;; fix) exec $(NODE) test/support/fix/demo.ts;; \
	*) echo "There is no demo for BROKER=$(BROKER): leave it out, or use BROKER=fix."; exit 2;; esac

drill: $(PACKAGES) $(GENERATED) ## Break something in the running sandbox, to practise; NAME=… chooses, without it lists
	@exec $(NODE) src/sandbox/drill.ts $(NAME)

verify-ledger: $(PACKAGES) $(GENERATED) ## Prove the ledgers of the running sandbox's wallets
	@exec $(NODE) src/sandbox/verify-ledger.ts

test: $(PACKAGES) $(GENERATED) ## Run the unit, integration and end-to-end tests on servers of their own
	@exec $(NODE) test/run.ts unit integration e2e

test-all: $(PACKAGES) ## Run all tests that are not in `.ci/run`, for hours; keeps the output of each part
	@exec .ci/all

test-fault: $(BUILT) ## Run the long tests: crashes, lost answers, stopped servers, hostile clients
	@MARINA_TEST_BUILD=dist $(NODE) test/run.ts fault
	@# After the others, and one file at a time: these compare times.
	@MARINA_TEST_BUILD=dist $(NODE) test/run.ts --test-concurrency=1 hostile

test-fix: $(PACKAGES) $(GENERATED) ## Run the tests of FIX, against an exchange's gateway that QuickFIX makes and one of loose habits
	@exec $(NODE) test/run.ts fix interop

test-cluster: $(BUILT) ## Run clusters of MariaDB, MySQL and NATS servers through faults; RUNS=… repeats them
	@MARINA_TEST_BUILD=dist RUNS='$(RUNS)' $(NODE) test/run.ts cluster

test-scale: $(PACKAGES) $(GENERATED) ## Run each statement on a million orders, and count the rows it reads; ORDERS=… chooses
	@exec $(NODE) test/run.ts scale

mutants: $(PACKAGES) $(GENERATED) ## Change the code in small ways, and tell which changes no test notices; FILES=… TESTS=… choose
	@# A property that a change breaks need not find its smallest sample.
	@FILES='$(FILES)' TESTS='$(TESTS)' MARINA_TEST_BOUND_MS=6000 npx stryker run test/mutants.mjs

check: openapi ## Check format, lint, types, style, protos, OpenAPI, the protos against the last release, and deployed packages
	@npx biome ci $(if $(MAKE_TERMOUT),,--colors=off) .
	@REDOCLY_SUPPRESS_UPDATE_NOTICE=true npx redocly lint --config src/site/openapi/redocly.yaml --format=stylish $(OPENAPI) > $(OPENAPI).lint 2>&1 \
	|| { cat $(OPENAPI).lint; exit 1; }
	@npx tsc
	@npx buf lint
	@$(NODE) src/tools/breaking.ts
	@$(NODE) src/tools/tidy.ts
	@$(NODE) src/tools/supply-chain.ts

bench: $(BUILT) ## Measure, and print ratios; AGAINST=commit compares with that version; ONLY=… chooses
	@MARINA_TEST_BUILD=dist AGAINST='$(AGAINST)' exec $(NODE) test/bench/run.ts $(ONLY)

build: $(BUILT) ## Make dist/, the gateway as it is deployed

generate: $(PACKAGES) ## Make src/gen: what is made of proto/; and what is made of it in clients/ and docs/
	@npx buf generate
	@$(NODE) src/tools/clients.ts
	@$(MAKE) openapi
	@page=$$($(NODE) src/tools/broker-page.ts) && printf '%s\n' "$$page" > docs/BROKER-REFERENCE.md
	@page=$$($(NODE) src/tools/operator-page.ts) && printf '%s\n' "$$page" > docs/operations/calls.md

# The types are all that is taken from them, so nothing that runs waits for them.
openapi: $(PACKAGES) $(GENERATED)
	@$(NODE) src/tools/openapi.ts > $(OPENAPI)
	@npx openapi-typescript --default-non-nullable=false --output src/gen/openapi.ts $(OPENAPI) > /dev/null

config: $(PACKAGES) $(GENERATED) ## List every setting with its default, range and meaning
	@exec $(NODE) src/main.ts config

broker-check: $(PACKAGES) $(GENERATED) ## Hold a broker's adapter against its protocol; ADDRESS=host:port, ARGS='--account …'
	@exec $(NODE) src/main.ts broker-check $(ADDRESS) $(ARGS)

clean: ## Remove the sandbox's data and what was generated and built
	@for folder in .local "$${MARINA_DATA_DIR:-.local}"; do \
	pid=$$(cut -d ' ' -f 1 "$$folder/lock" 2>/dev/null || true); \
	if [ -n "$$pid" ] && kill -0 "$$pid" 2>/dev/null; then \
	echo "A sandbox is running (process $$pid). Stop it first."; exit 1; fi; done
	rm -rf .local dist src/gen

$(PACKAGES): package-lock.json | node
	@echo 'Installing the npm packages: half a minute to some minutes, the first time only'
	@npm ci --no-audit --no-fund --loglevel=error
	@touch $@

# buf leaves files alone that come out the same.
$(GENERATED): $(PROTOS) | $(PACKAGES)
	@echo 'Generating code from proto/'
	@npx buf generate
	@touch $@

# The last command makes the file that says all of it is there.
$(BUILT): $(SOURCES) $(GENERATED) | $(PACKAGES)
	@echo 'Building dist/'
	@rm -rf dist
	@npx tsc -p tsconfig.build.json
	@cp --parents -t dist $$(find src -type f ! -name '*.ts' ! -path 'src/sandbox/*' ! -path 'src/simulator/*' ! -path 'src/tools/*' \
	! -name 'openapi.json*' ! -name redocly.yaml ! -name README.md) docs/*.md docs/deploy/*.sql CHANGELOG.md \
	$$(find proto/google proto/marina/gateway proto/marina/options -type f) \
	LICENSE package-lock.json .npmrc
	@$(NODE) src/tools/supply-chain.ts sbom dist/sbom.cdx.json
	@cp package.json dist

node:
	@command -v node >/dev/null || { echo 'Node.js 20.19 or newer is needed: https://nodejs.org'; exit 1; }
	@node -e 'const [major, minor] = process.versions.node.split(".").map(Number); if (major > 20 || (major === 20 && minor >= 19)) process.exit(0); console.error("Node.js 20.19 or newer is needed; this is " + process.version + ": https://nodejs.org"); process.exit(1)'

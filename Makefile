# `make` lists the targets. Everything is installed into this folder: node_modules and .cache.
SHELL := /bin/sh
NODE := node_modules/.bin/node
VITEST := $(NODE) node_modules/vitest/vitest.mjs run
ENVOY_VERSION := 1.40.0
OLDER_ENVOYS := 1.36.4 1.38.3

.DEFAULT_GOAL := help
.PHONY: help demo test test-unit test-integration test-kubernetes test-vllm lint fmt gen bench bench-policies install envoy envoys clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

demo: install envoy ## see it work: simulated workers, Envoy, policies, real SDK traffic (ONCE=1: end by itself)
	@$(NODE) demo/demo.ts $(if $(ONCE),--once)

test: install envoys ## all tests that need nothing but this folder
	@$(VITEST) --project unit --project integration $(VITEST_FLAGS)

test-unit: install ## the tests of the parts, without Envoy
	@$(VITEST) --project unit $(VITEST_FLAGS)

test-integration: install envoys ## the tests through real Envoys
	@$(VITEST) --project integration $(VITEST_FLAGS)

test-kubernetes: install envoy ## the tests against a real API server, that of $KUBECONFIG (with the CRDs of InferencePool and Gateway API)
	@$(VITEST) --project kubernetes $(VITEST_FLAGS)

test-vllm: install envoy ## the tests against a real vLLM: VLLM_SERVE='command', given a port as last argument
	@$(VITEST) --project vllm $(VITEST_FLAGS)

lint: install ## formatting, lint rules, types, import directions, unused code, generated files
	node_modules/.bin/biome ci
	node_modules/.bin/tsc
	$(NODE) node_modules/.bin/depcruise src
	$(NODE) node_modules/.bin/knip
	$(NODE) scripts/gen/gen.ts --check

gen: install ## write CRDs, JSON Schemas and the reference page anew from src/api
	@$(NODE) scripts/gen/gen.ts

fmt: install ## format, and mend what can be mended by itself
	node_modules/.bin/biome check --write

bench: install envoy ## full rate through the whole stack (DURATION=60 seconds): failures, memory, latency
	@$(NODE) benchmarks/full-rate.ts --seconds $(or $(DURATION),60)

bench-policies: install ## a decision under 200 rules (RULES=n), beside CEL and a literal evaluator
	@$(NODE) benchmarks/policy-evaluation.ts --rules $(or $(RULES),200)

install: node_modules/.installed ## npm packages, Node among them

node_modules/.installed: package-lock.json
	@command -v npm >/dev/null || { echo "please install Node.js with npm 9 or newer (Debian: apt-get install nodejs npm)"; exit 1; }
	@echo "installing npm packages into node_modules (Node 24 among them)"
	@npm ci --no-audit --no-fund --loglevel=error
	@$(NODE) --version >/dev/null || { echo "the node package did not install its binary: allow install scripts for it (npm ci --foreground-scripts shows why)"; exit 1; }
	@touch $@

envoy: ## the newest supported Envoy; ENVOY=/path uses another
	@[ -n "$$ENVOY" ] || scripts/install-envoy.sh $(ENVOY_VERSION)

envoys: ## every Envoy that the tests run on
	@for version in $(OLDER_ENVOYS) $(ENVOY_VERSION); do scripts/install-envoy.sh $$version || exit 1; done

clean: ## remove what was installed and cached here
	rm -rf node_modules .cache

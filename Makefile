# The few commands of the house; `make` alone lists them. People and CI run the same ones (.ci/run calls these).
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

GO          ?= go
PKG         ?= ./...
GOLANGCI    := $(shell $(GO) env GOPATH)/bin/golangci-lint
LINT_VERSION := v2.15.0
SEED        ?=
SEEDS       ?= 200
KIND        ?= one
FROM        ?= 0
MUTANTS     ?= .
MUTANT_SEEDS ?= 10000
FUZZ        ?= .
FUZZ_TIME   ?= 20s

.PHONY: help build test race lint layout golden fuzz sim seeds mutants interop interop-all chaos bench ci

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

build: ## bin/troupe: static, stripped, no cgo
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/troupe ./cmd/troupe

test: ## every test that needs only Go (about three minutes); PKG=./store/... narrows
	$(GO) test $(PKG)

race: ## the same under the race detector; PKG=… narrows
	$(GO) test -race $(PKG)

lint: $(GOLANGCI) ## go vet, golangci-lint with the reasons in .golangci.yml
	$(GO) vet $(PKG)
	$(GOLANGCI) run --allow-parallel-runners $(PKG)

$(GOLANGCI):
	$(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

layout: ## only the rules of the house: arrows, absences, papers
	$(GO) test -count=1 .

golden: ## rewrite transcripts, golden outputs and generated papers; look at the diff before you commit it
	$(GO) generate ./...
	$(GO) test ./partition ./cluster ./wire -rewrite
	$(GO) test ./cmd/troupe -run Golden -update

fuzz: ## each fuzz target for FUZZ_TIME; FUZZ=regexp chooses
	.ci/fuzz '$(FUZZ)' '$(FUZZ_TIME)'

sim: ## the broker in the simulated world: SEEDS=n worlds, or one with SEED=n
	$(GO) test -count=1 ./actors/sim -args $(if $(SEED),-seed=$(SEED),-seeds=$(SEEDS))

seeds: ## a ledger of KIND (one, several, long or power) seeds: FROM and SEEDS say which, a line goes to bench/results/seeds.txt
	$(GO) test -count=1 -timeout 0 -v ./actors/sim -run '^TestLedger$$' -args -ledger=$(KIND) -from=$(FROM) -seeds=$(SEEDS) \
		-commit=$(shell git describe --always --dirty) -results=$(CURDIR)/bench/results/seeds.txt

mutants: ## put known bugs into the tree, one by one, and run random tests until each is found: hours; MUTANTS=regexp chooses
	$(GO) test -count=1 -timeout 0 -v ./bench/mutants -run '^TestMutants$$' -args -mutants='$(MUTANTS)' -seeds=$(MUTANT_SEEDS)

interop: ## real clients and Kafka's own tools, the smoke part (at most ten minutes)
	$(GO) run ./bench/interop
	$(GO) test -count=1 -tags interop ./bench/peer

interop-all: ## the whole matrix of clients, codecs and acks
	mkdir -p bench/results
	$(GO) run ./bench/interop -suite all -out bench/results/interop-troupe.txt
	$(GO) test -count=1 -tags interop ./bench/peer

chaos: ## faults under real clients, and hostile ones; `go run ./bench/chaos -help` for long runs
	TROUPE_TEST_ALONE=1 $(GO) test -count=1 -timeout 30m -v ./bench/chaos

bench: ## per-partition throughput against floors and peers, raw files and one page
	$(GO) run ./bench/partition

ci: ## what the machine runs on each push
	.ci/run

# What there is to do here. `make run` is the place to begin.
.PHONY: run test lint format bench fuzz check

# Traits and flags in a fixed order: with one by lot, hardly changed sources are built anew as a whole. So they are where a terminal gets colours and a
# file doesn't: there are none.
export SWIFT_DETERMINISTIC_HASHING = 1

# Installs what is missing, builds, and starts a server with demo people and channels.
run:
	scripts/install-dependencies
	swift build --no-color-diagnostics -c release --product roost --traits Server --static-swift-stdlib
	.build/release/roost demo

test:
	scripts/test

lint:
	swift format lint --strict -r Sources Tests Examples Package.swift

format:
	swift format --in-place -r Sources Tests Examples Package.swift

# Each figure stands beside the floor that this machine sets. docs/performance.md says how they are measured, and gets the table.
# PARTS="send fanout" measures these only; RUNS=1 takes a third of the time.
# The servers that fan-out is measured beside are installed too. `cluster` is measured only if PARTS has it: it needs another build, PostgreSQL and NATS.
RUNS ?= 3
bench:
	scripts/install-dependencies $(if $(filter cluster,$(PARTS)),--cluster,--peers)
	swift build --no-color-diagnostics -c release --product roost --traits $(if $(filter cluster,$(PARTS)),Cluster,Server) --static-swift-stdlib
	scripts/bench-table --runs $(RUNS) $(PARTS)

# Millions of inputs that break every rule, for so many minutes. The seed that it prints repeats a run: ROOST_SEED=… make fuzz
MINUTES ?= 10
fuzz:
	scripts/install-dependencies --cluster
	swift build --no-color-diagnostics -c release --product roost-fuzz --traits Cluster
	.build/release/roost-fuzz $(MINUTES)

check: lint test

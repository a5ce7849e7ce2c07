# The project's tasks. Start with `make run`.
.PHONY: run test lint format bench fuzz check

# Keeps traits and flags in a fixed order: in a random one, barely changed sources are rebuilt completely. Colour flags
# would differ too, between a terminal and a file, so builds have none.
export SWIFT_DETERMINISTIC_HASHING = 1

# Installs missing dependencies, builds, and starts a server with demo people and channels.
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

# Each figure is shown next to the floor that this machine sets. docs/performance.md says how they are measured, and receives the table.
# PARTS="send fanout" measures only these; RUNS=1 takes a third of the time.
# Also installs the servers that fan-out is compared with. `cluster` is measured only if PARTS names it: it needs another build, PostgreSQL and NATS.
RUNS ?= 3
bench:
	scripts/install-dependencies $(if $(filter cluster,$(PARTS)),--cluster,--peers)
	swift build --no-color-diagnostics -c release --product roost --traits $(if $(filter cluster,$(PARTS)),Cluster,Server) --static-swift-stdlib
	scripts/bench-table --runs $(RUNS) $(PARTS)

# Millions of inputs that break every rule, for MINUTES minutes. The printed seed repeats a run: ROOST_SEED=… make fuzz
MINUTES ?= 10
fuzz:
	scripts/install-dependencies --cluster
	swift build --no-color-diagnostics -c release --product roost-fuzz --traits Cluster
	.build/release/roost-fuzz $(MINUTES)

check: lint test

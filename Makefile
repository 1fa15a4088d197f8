# `make` or `make help` lists what there is to do.

.DEFAULT_GOAL := help
.PHONY: help run test lint fmt bench bench-redis soak

help: ## List what there is to do
	@printf 'Tidegate: a rate limiter and quota engine for AI gateways.\n\n'
	@printf '  make run    build it, start it on examples/quickstart.yaml, and see what to try next\n'
	@printf '              (options for the server: make run ARGS="--listen 127.0.0.1:8081")\n'
	@printf '  make test   set up what is missing, and run every test\n'
	@printf '  make lint   formatting, clippy, documentation, dependencies: the quick checks\n'
	@printf '  make fmt    format the code\n'
	@printf '  make bench  measure it beside other rate limiters (some minutes)\n'
	@printf '              (options: make bench ARGS="--quick")\n'
	@printf '  make bench-redis  what the shared store costs a Redis (some minutes)\n'
	@printf '  make soak   the randomised tests at large volumes (an hour or so)\n\n'
	@printf 'Rust and Python 3 are needed; README.md says more.\n'

run: ## Build and start
	@scripts/run.sh $(ARGS)

test: ## Everything
	@scripts/test.sh

lint: ## The quick checks
	@scripts/test.sh lint

fmt: ## Format
	cargo fmt --all

bench: ## Measure
	cargo run --release --locked --package tidegate-bench -- $(ARGS)

bench-redis: ## The shared store
	@scripts/setup.sh servers
	cargo run --release --locked --package tidegate-bench --bin shared_store -- $(ARGS)

soak: ## Large volumes
	@scripts/soak.sh

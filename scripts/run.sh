#!/usr/bin/env bash
# Builds the server and starts it on the quickstart limits. Arguments are handed to `tidegate serve`.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/setup.sh

need_rust
echo "Building the server (a few minutes the first time, seconds after that) …"
cargo build --release --locked --package tidegate-server --bin tidegate

target="${CARGO_TARGET_DIR:-target}"
echo "Starting it on examples/quickstart.yaml; edit that file while it runs. Ctrl-C ends it."
exec "$target/release/tidegate" serve examples/quickstart.yaml --hints "$@"

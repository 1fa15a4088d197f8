#!/usr/bin/env bash
# Sets up what is missing and runs every test; `scripts/test.sh lint` runs the quick checks only.
#
# All steps share one target directory. Those that need other compiler flags have their own below
# it, so that no step makes another one build anew.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/setup.sh

target="${CARGO_TARGET_DIR:-target}"
steps_done=0

# step NAME COMMAND…: a section of the output, with its time.
step() {
    header "$1"
    shift
    local began=$SECONDS
    "$@"
    steps_done=$((steps_done + 1))
    echo "--- done in $((SECONDS - began)) s"
}

formatting() {
    cargo fmt --all -- --check
}

lints() {
    cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
}

documentation() {
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
}

dependencies() {
    need_cargo_deny
    # Some wrappers in deny.toml are of crates to come.
    cargo deny check --hide-inclusion-graph --allow unused-wrapper bans licenses sources
}

tests() {
    need_redis_servers
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --workspace --locked
    else
        echo "cargo-nextest is not here; cargo test does the same, slower"
        cargo test --workspace --all-targets --locked --no-fail-fast
    fi
}

doc_tests() {
    cargo test --workspace --doc --locked
}

interleavings() {
    RUSTFLAGS="--cfg loom" cargo test --release --locked --target-dir "$target/loom" \
        --package tidegate-store --test loom
}

contract() {
    need_python crates/server/tests/schemathesis/requirements.txt
    # The tests have built it.
    TIDEGATE_BIN="$target/debug/tidegate" crates/server/tests/schemathesis/run.sh
}

fuzz_targets() {
    # libfuzzer is C++.
    apt_install c++ g++
    cargo build --manifest-path fuzz/Cargo.toml --target-dir "$target/fuzz" --locked --quiet
}

unit_file() {
    if ! command -v systemd-analyze >/dev/null; then
        echo "systemd is not here; the unit file is held to the binary by the tests above"
        return
    fi
    # It has to name a program that is there.
    local folder
    folder="$(mktemp -d)"
    sed "s|/usr/local/bin/tidegate|$(realpath "$target")/debug/tidegate|" packaging/tidegate.service \
        >"$folder/tidegate.service"
    systemd-analyze verify --man=no "$folder/tidegate.service"
    rm -r "$folder"
}

quick() {
    step "Formatting" formatting
    step "Lints" lints
    step "Documentation" documentation
    step "Dependencies: bans, licences, sources" dependencies
}

everything() {
    quick
    step "Tests" tests
    step "Tests in the documentation" doc_tests
    step "Interleavings of the memory store (loom)" interleavings
    step "The HTTP door against its OpenAPI document (schemathesis)" contract
    step "Fuzz targets compile" fuzz_targets
    step "Unit file" unit_file
}

need_rust
case "${1:-}" in
    lint) quick ;;
    "") everything ;;
    *) fail "usage: scripts/test.sh [lint]" ;;
esac
header "All $steps_done steps passed in $((SECONDS / 60)) min $((SECONDS % 60)) s."

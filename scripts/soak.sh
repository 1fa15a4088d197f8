#!/usr/bin/env bash
# The randomised tests at large volumes. TIDEGATE_SOAK and PROPTEST_CASES say how large.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/setup.sh

need_rust
# How many times the usual volume of random walks and histories, and how many cases a property tries.
export TIDEGATE_SOAK="${TIDEGATE_SOAK:-100}"
export PROPTEST_CASES="${PROPTEST_CASES:-100000}"
echo "Random walks at $TIDEGATE_SOAK times their volume, $PROPTEST_CASES cases for each property."
# Optimised, with the assertions on.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true CARGO_PROFILE_RELEASE_LTO=off
scripts/setup.sh servers
cargo test --release --locked --no-fail-fast --target-dir "${CARGO_TARGET_DIR:-target}/soak" \
    --package tidegate-core --package tidegate-store --package tidegate --package tidegate-tower

#!/usr/bin/env bash
# Holds the running server to its OpenAPI document, on both listeners: requests made up from the
# document, right ones and wrong ones, have to get answers that the document names.
#
#   crates/server/tests/schemathesis/run.sh [requests for each operation]
#
# SEED says which requests: the same ones each time by default, SEED=$RANDOM for others.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
cd "$here/../../../.."
requests="${1:-50}"
target="${CARGO_TARGET_DIR:-target}"

# The environment that the caller has made, or one of its own.
environment="${TIDEGATE_PYTHON_ENV:-.venv}"
if [ ! -x "$environment/bin/schemathesis" ]; then
    environment="$target/schemathesis-venv"
    if ! cmp -s "$here/requirements.txt" "$environment/installed.txt"; then
        rm -rf "$environment"
        python3 -m venv "$environment"
        "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
        cp "$here/requirements.txt" "$environment/installed.txt"
    fi
fi

# The program that the caller has built, or one that is built here.
if [ -z "${TIDEGATE_BIN:-}" ]; then
    cargo build --quiet --locked --package tidegate-server --bin tidegate
    TIDEGATE_BIN="$target/debug/tidegate"
fi

folder="$(mktemp -d)"
"$TIDEGATE_BIN" serve "$here/limits.yaml" --listen 127.0.0.1:0 --admin 127.0.0.1:0 \
    --log-level warn,audit=off >"$folder/stdout" 2>"$folder/stderr" &
server=$!
ended() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    rm -rf "$folder"
}
trap ended EXIT

for _ in $(seq 100); do
    if [ -s "$folder/stdout" ]; then
        break
    fi
    if ! kill -0 "$server" 2>/dev/null; then
        cat "$folder/stderr" >&2
        exit 1
    fi
    sleep 0.1
done
read -r _ check admin <"$folder/stdout"

# hold URL OPTION…
hold() {
    local url="$1"
    shift
    (cd "$folder" && PYTHONDONTWRITEBYTECODE=1 SCHEMATHESIS_HOOKS="$here/hooks.py" "$python_bin/schemathesis" --config-file "$here/schemathesis.toml" \
        run "$url/openapi.json" --url "$url" --checks all --max-examples "$requests" --seed "${SEED:-1}" \
        --request-timeout 20 --suppress-health-check all --warnings off "$@")
}
python_bin="$(cd "$environment/bin" && pwd)"
"$python_bin/python" "$here/patterns.py" "${admin#admin=}" token-of-the-test
hold "${check#check=}"
hold "${admin#admin=}" --header "Authorization: Bearer token-of-the-test"

# It is still the same process, and it met no fault of its own.
kill -0 "$server"
if grep -q "a fault of the server" "$folder/stderr"; then
    cat "$folder/stderr" >&2
    exit 1
fi

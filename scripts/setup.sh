# What the other scripts need, installed where it is missing. Sourced, not run.
#
# Debian packages are installed only as root or with sudo that asks for no password; otherwise the
# message says what to install.

# A section of the output.
header() {
    printf '\n=== %s\n' "$1"
}

fail() {
    printf '\n%s\n' "$1" >&2
    exit 1
}

# apt_install COMMAND PACKAGE…: installs the packages if there is no such command.
apt_install() {
    local command="$1"
    shift
    if command -v "$command" >/dev/null; then
        return
    fi
    install_packages "'$command' is missing" "$@"
}

install_packages() {
    local why="$1"
    shift
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        as_root=(sudo -n)
    fi
    if ! command -v apt-get >/dev/null || { [ "$(id -u)" -ne 0 ] && ! sudo -n true 2>/dev/null; }; then
        fail "$why. Install it, on Debian with: apt-get install $*"
    fi
    echo "$why: installing $*"
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

need_rust() {
    if [ -r "$HOME/.cargo/env" ]; then
        source "$HOME/.cargo/env"
    fi
    if ! command -v cargo >/dev/null; then
        fail "'cargo' is missing. Install Rust 1.95 or later (rustup.rs), then try again."
    fi
    # Rust links with the C compiler.
    apt_install cc gcc libc6-dev
}

# A Python environment of its own in .venv, with the versions of the requirements file.
need_python() {
    local requirements="$1"
    apt_install python3 python3
    local stamp=".venv/installed.txt"
    if [ -f "$stamp" ] && cmp -s "$requirements" "$stamp"; then
        return
    fi
    if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
        install_packages "Python's venv is missing" python3-venv
    fi
    rm -rf .venv
    python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
    cp "$requirements" "$stamp"
}

# The version of cargo-deny that deny.toml is written for.
CARGO_DENY_VERSION=0.20.2

need_cargo_deny() {
    if [ "$(cargo deny --version 2>/dev/null)" = "cargo-deny $CARGO_DENY_VERSION" ]; then
        return
    fi
    echo "Installing cargo-deny $CARGO_DENY_VERSION (some minutes, once)"
    # Unoptimised: it takes a third of the time to build, and checks this workspace in a second.
    CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-deny --version "$CARGO_DENY_VERSION" --locked --debug --quiet
}

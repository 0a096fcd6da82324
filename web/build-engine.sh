#!/usr/bin/env bash
# Compiles the engine of the page (crates/web) to WebAssembly, in web/build/engine.
#
#     web/build-engine.sh            # build
#     web/build-engine.sh --check    # print what is missing, and fail if anything is
#     web/build-engine.sh --names    # build with the names of functions, for profilers
#
# There are two ways to compile. A Rust toolchain of rustup has the target after `rustup target add`. Debian's package
# rustc-web has no compiled standard library for it, so cargo builds that from the sources in rust-web-src.
set -euo pipefail
cd "$(dirname "$0")/.."

triple=wasm32-unknown-unknown
# rustc-web of Debian, and the sources of its standard library.
debian=/usr/bin/rustc
library=/usr/lib/rustlib/src/rust/library
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

# Prints the path of a linker for WebAssembly: Debian's, or that of a toolchain of rustup.
linker() {
	command -v rust-lld && return
	local found=("$(rustc --print sysroot 2>/dev/null)"/lib/rustlib/*/bin/rust-lld)
	[ ! -x "${found[0]}" ] || echo "${found[0]}"
}

# Prints how the engine can be compiled here, `rustup` or `debian`; nothing if it cannot.
way() {
	if [ -d "$(rustc --print target-libdir --target $triple 2>/dev/null)" ]; then
		echo rustup
	elif [ -x $debian ] && [ -e $library/std ] && [ -n "$(linker)" ] && is_recent; then
		echo debian
	fi
}

# True if Debian's compiler is not older than the project allows.
is_recent() {
	local oldest
	oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
	printf '%s\n' "$oldest" "$($debian --version | cut -d ' ' -f 2)" | sort --check=quiet --version-sort
}

missing() {
	local needs=()
	[ -n "$(way)" ] || needs+=("the target $triple (rustup target add $triple, or on Debian apt install rustc-web cargo-web rust-web-src)")
	command -v npm >/dev/null || needs+=("Node 18 or later with npm")
	local IFS=';'
	echo "${needs[*]}"
}

missing=$(missing)
[ -z "$missing" ] || { echo "the page needs: ${missing//;/; }" && exit 1; }
[ "${1:-}" != --check ] || exit 0

# -v shows.
build=(--target $triple --profile web -p sparelane-web)
case $(way) in
rustup) cargo build "${build[@]}" ;;
# `-Z build-std` is open to nightly toolchains only, or with this variable.
debian)
	CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$(linker)
	export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER
	RUSTC_BOOTSTRAP=1 RUSTC=$debian /usr/bin/cargo build -Z build-std=std,panic_abort "${build[@]}"
	;;
esac

# The face of the module must come from the version of wasm-bindgen that it was compiled with.
locked=$(sed -n '/^name = "wasm-bindgen"$/{n;s/^version = "\(.*\)"$/\1/p}' Cargo.lock)
pinned=$(sed -n 's/^wasm-bindgen-cli-support = "=\(.*\)"$/\1/p' web/bindgen/Cargo.toml)
[ "$locked" = "$pinned" ] || { echo "web/bindgen/Cargo.toml has wasm-bindgen $pinned, Cargo.lock has $locked" && exit 1; }
cargo build --release --locked --manifest-path web/bindgen/Cargo.toml --target-dir "$target/bindgen"

names=()
[ "${1:-}" != --names ] || names=(--names)
rm -rf web/build/engine
mkdir -p web/build/engine
# There is no pass of wasm-opt. Measured in V8, its -O3 made no scenario faster and `dumbbell-cubic` slower, left the
# compressed size as it was, and took several minutes.
"$target/bindgen/release/bindgen" ${names[@]+"${names[@]}"} "$target/$triple/web/sparelane_web.wasm" web/build/engine

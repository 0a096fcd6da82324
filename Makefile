# Builds, tests and documents sparelane. Start with `make run`, which reproduces one figure, or `make help`.
# Each target first builds the package into the virtual environment .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Folder in which `make run` writes figures and data.
OUT ?= out

# `libbpf` if its libraries are installed, else empty. With libbpf, the package can load programs into the kernel.
LIBBPF := $(shell test "$$(uname)" = Linux && $${PKG_CONFIG:-pkg-config} --exists libelf zlib 2>/dev/null && echo libbpf)
# Records whether the last build had libbpf. Installing or removing the libraries triggers a new build.
BUILT_HOW := $(VENV)/.$(if $(LIBBPF),with,without)-libbpf

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml -o -name '*.bpf.o') Cargo.toml Cargo.lock .cargo/config.toml

# Folder of the full results that `make results` reads; several `sparelane reproduce -o` may have written it.
FULL ?= out/full

# Number and seed of the random scenarios of `make explore`. An empty seed draws a new one.
N ?= 10000
SEED ?=
# Target and seconds of `make fuzz`.
TARGET ?= acknowledgments
SECONDS ?= 600

.DEFAULT_GOAL := help

.PHONY: help races run test test-all test-rust web test-web test-bpf test-linux test-linux-rc3 linux-controllers linux-rtcp linux-rc3-off linux-bpf bpf-objects explore fuzz build check \
	stubs results goldens docs bench bench-web bench-sweep compare-threads bench-peers bench-controllers bench-windows bench-wire clean

## make help: list the targets
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make run: reproduce one figure of the RC3 paper into out/
run: build
	$(BIN)/sparelane reproduce rc3/fig8-load --quick -o $(OUT)

# Only `make test-all` runs the Rust tests of these crates: with QUIC, TLS and libbpf, they take as long to compile as all
# others together. `make test` still tests them through the Python package.
CRATES_TESTED_LATER = sparelane-net sparelane-bpf sparelane-emulate sparelane-py
# Without MAKEFLAGS, since cargo's doctests would warn that they cannot reach the job server of make.
RUST_TESTS = MAKEFLAGS= cargo test --workspace --quiet $(addprefix --exclude ,$(CRATES_TESTED_LATER))
# Further Rust tests of `make test-all`.
RUST_TESTS_LATER = cargo test --quiet $(addprefix -p ,$(CRATES_TESTED_LATER)) $(if $(LIBBPF),--features sparelane-py/libbpf)

# Tests marked `slow` run only in `make test-all`. Tests marked `machine` run one by one after the others.
PYTHON_TESTS = $(BIN)/python -m pytest -q tests
PARALLEL = --numprocesses auto
# File with the names of Python tests that passed: `make test` writes it, and `make test-all` leaves these tests out.
PASSED ?=

## make test: run the tests, without the slow ones
# Builds the package while the Rust tests compile and run, since each leaves a core idle for a minute.
test:
	$(MAKE) --jobs=2 build test-rust
	$(PYTHON_TESTS) -m 'not machine and not slow' $(PARALLEL) $(if $(PASSED),--record-passed=$(PASSED))
	$(PYTHON_TESTS) -m 'machine and not slow'

## make test-all: run all tests, including the slow ones
test-all:
	$(MAKE) --jobs=2 build test-rust
	$(RUST_TESTS_LATER)
	$(PYTHON_TESTS) -m 'not machine' $(PARALLEL) $(if $(PASSED),--without-passed=$(PASSED))
	$(PYTHON_TESTS) -m machine

test-rust:
	$(RUST_TESTS)

# The page of the playground, in the place from which `sparelane play` serves it and a wheel takes it.
PAGE = python/sparelane/play/page/index.html
ENGINE = web/build/engine/engine_bg.wasm
ENGINE_SOURCES := $(shell find crates/core crates/cc crates/transport crates/sim crates/catalogue crates/scenario crates/web \
	-name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock web/build-engine.sh web/bindgen/Cargo.toml web/bindgen/src/main.rs
PAGE_SOURCES := $(shell find web -maxdepth 1 -type f) $(shell find web/src -type f) $(wildcard scenarios/*.toml)
# Prints what is missing to build the page; nothing if it can be built.
MISSING_FOR_WEB = web/build-engine.sh --check

## make web: build the playground, the simulator in a page of the browser
# Needs Node and the WebAssembly target of Rust; without them, it prints what to install. The first build takes some
# minutes.
web: $(PAGE)

$(PAGE): $(ENGINE) $(PAGE_SOURCES)
	cd web && npm run --silent build
	mkdir -p $(@D)
	cp web/dist/index.html web/dist/licences.txt $(@D)

$(ENGINE): $(ENGINE_SOURCES) web/node_modules/.installed
	web/build-engine.sh
	touch $@

web/node_modules/.installed: web/package-lock.json
	@$(MISSING_FOR_WEB)
	cd web && npm ci --ignore-scripts --no-audit --no-fund --silent
	touch $@

## make test-web: test the playground: digests of the engine, and the page in Chromium
# Skips the tests with one line if the page cannot be built here.
test-web:
	@if why=$$($(MISSING_FOR_WEB)); then $(MAKE) web && cd web && npm run --silent check && npm run --silent test; \
		else echo "skipped: make test-web: $$why"; fi

## make explore: run random scenarios (N=10000 SEED=7)
# Writes scenarios that fail to out/explore, as files for `sparelane run`.
explore:
	cargo run --quiet -p sparelane-scenario --example explore -- $(N) $(SEED)

## make fuzz: fuzz one target (TARGET=segments SECONDS=600)
# Needs the nightly toolchain and `cargo install cargo-fuzz --locked`.
fuzz:
	cd fuzz && cargo +nightly fuzz run -s none $(TARGET) -- -max_total_time=$(SECONDS)

## make races: check the threads of a run for data races
# Checks every order of the steps in which threads exchange packets, by the model checker `loom`, and runs divided runs
# under ThreadSanitizer. The latter needs the nightly toolchain with the component rust-src.
TARGET_TRIPLE = $(shell rustc -vV | sed -n 's/^host: //p')
races:
	RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 CARGO_TARGET_DIR=target/loom \
		cargo test --quiet --release -p sparelane-sim --lib domains::exchange
	RUSTFLAGS=-Zsanitizer=thread CARGO_TARGET_DIR=target/tsan \
		cargo +nightly test --quiet -Zbuild-std --target $(TARGET_TRIPLE) -p sparelane-catalogue --test oracle domains

## make test-bpf: run the tests of the BPF programs in the running kernel (root)
# Loads the BPF programs and tests them in separate network namespaces. Needs root, a kernel with BTF and a build with
# libbpf; `sparelane kernel doctor` checks these. Fails if all tests were skipped.
test-bpf: build
	$(BIN)/python -m pytest -v -m kernel tests/test_linux_bpf.py --least-passed 1

## make test-linux: run scenarios on the real TCP of Linux; builds a kernel once
# Tests scenarios on Linux TCP in virtual time, including RTCP and the comparison of controllers, and then the BPF
# programs in the running kernel. Builds a User-Mode Linux kernel once, in about eight minutes on one core;
# docs/linux.md lists the packages it needs. LINUX_SET=full or short selects the set of tests; by default a slow host
# runs the short one. Fails if too few tests passed. The BPF tests are skipped without root or if the running kernel has
# no BTF.
LINUX_SET ?=
test-linux: build
	$(BIN)/sparelane linux build
	$(BIN)/python tests/linux_suite.py $(LINUX_SET)
	$(BIN)/python -m pytest -q -m kernel tests/test_linux_bpf.py --least-passed $(LEAST_BPF)

# Number of BPF tests that must pass in `make test-linux`: none if `kernel doctor` finds something missing.
LEAST_BPF ?= $(shell $(BIN)/sparelane kernel doctor >/dev/null 2>&1 && echo 40 || echo 0)

# Compares each controller of the Linux kernel with ours, or reproduces Figs. 4 to 7 of the RTCP paper on Linux; writes
# to results/.
linux-controllers linux-rtcp: build
	$(BIN)/sparelane linux build
	$(BIN)/sparelane reproduce $(if $(findstring rtcp,$@),rtcp/testbed,linux/controllers) --check -o results

# Compares a kernel that has RC3's patches, with their option off, with the stock kernel packet by packet. Builds both,
# in about eight minutes on one core each.
linux-rc3-off: build
	$(BIN)/python benches/linux_rc3_off.py results/linux/rc3-off

# Compares RTCP and RAPID in the running kernel with the simulator: windows, gaps and processor time. Needs root, and
# `perf` to measure the kernel's own controllers.
LINUX_BPF ?= results/linux/bpf
linux-bpf: build
	$(BIN)/python benches/linux_bpf.py $(LINUX_BPF)

## make test-linux-rc3: run the tests of RC3 in the kernel; builds two kernels once
# Builds the kernels with and without RC3 and tests RC3, including scripted segments and Figs. 15 to 18 of the paper.
test-linux-rc3: build
	$(BIN)/sparelane linux build
	$(BIN)/sparelane linux build --rc3
	$(BIN)/python -m pytest -q tests/test_linux_rc3.py --least-passed 25
	$(BIN)/python -m pytest -q tests/test_linux_rc3_scripts.py --least-passed 35

# Compiles the BPF programs with clang and llvm, and records the digests of their sources, which a test compares.
bpf-objects:
	for program in $$(cd crates/bpf/programs && ls *.bpf.c); do \
		sh crates/bpf/programs/compile.sh $${program%.bpf.c} crates/bpf/objects/$${program%.c}.o || exit 1; done
	SPARELANE_WRITE_OBJECTS=1 cargo test --quiet -p sparelane-bpf --test objects objects_are_built_from_these_sources

## make build: set up .venv with the package and its development tools
build: $(VENV)/.built

$(VENV)/.environment: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet 'maturin>=1.9,<2'
	touch $@

$(BUILT_HOW): $(VENV)/.environment
	rm -f $(VENV)/.with-libbpf $(VENV)/.without-libbpf
	touch $@

# Without debug information, since maturin strips the library.
$(VENV)/.built: $(VENV)/.environment $(BUILT_HOW) $(RUST_SOURCES) pyproject.toml
	CARGO_PROFILE_RELEASE_DEBUG=false PIP_QUIET=1 $(BIN)/maturin develop --release --quiet --extras dev,gym $(if $(LIBBPF),--features libbpf)
	touch $@

# Writes the types of the wire's settings, which follow from their declaration, for mypy and editors.
stubs: build
	$(BIN)/python -c 'from sparelane.wire.settings import stub; print(stub(), end="")' > $(VENV)/declared.pyi
	mv $(VENV)/declared.pyi python/sparelane/wire/declared.pyi

## make check: run formatters, linters, type checks and the check of prose
check: build
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(if $(LIBBPF),cargo clippy -p sparelane-bpf --features libbpf --all-targets --quiet -- -D warnings)
	$(BIN)/ruff format --check python tests benches docs
	$(BIN)/ruff check python tests benches docs
	$(BIN)/mypy
	$(BIN)/python tests/prose.py
	@if [ -e $(ENGINE) ]; then cd web && npm run --silent check; \
		else echo "the TypeScript of the playground is not checked, because make web has not run"; fi

## make results: copy saved results into results/ and write its pages (FULL=out/full)
# Copies rows, curves, figures and manifests, and writes the pages. Then fails if a claim fails.
results: build
	cd $(FULL) && find . -name rows.csv -o -name manifest.json -o -name figure.png -o -path '*/curves/*.csv' | \
	  tar cf - -T - | tar xf - -C $(CURDIR)/results
	$(BIN)/sparelane report results --see docs/speed-and-ns3.md --check

## make goldens: update the digests of short runs
# Updates tests/goldens.json and prints the runs that changed; also updates the index of the experiments.
goldens: build
	$(BIN)/python tests/test_goldens.py
	$(BIN)/python -m sparelane.papers.index

## make docs: write the documentation to docs/_build/html
# A warning or a broken link is an error. The playground is a part of the documentation; if it cannot be built here, a
# page in its place says so.
docs: build $(VENV)/.docs
	@if why=$$($(MISSING_FOR_WEB)); then $(MAKE) web; else echo "the documentation has no playground: $$why"; fi
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	mkdir -p docs/_build/html/playground
	cp docs/static/no-playground.html docs/_build/html/playground/index.html
	test ! -e $(PAGE) || cp $(PAGE) docs/_build/html/playground/index.html
	$(BIN)/python docs/check_links.py docs/_build/html

$(VENV)/.docs: pyproject.toml $(VENV)/.environment
	$(BIN)/pip install --quiet 'furo>=2024.8' 'myst-parser>=4.0' 'sphinx>=8.0'
	touch $@

## make bench: time the simulator
bench: build
	$(BIN)/sparelane bench

# Compares the speed of the engine in Chromium, or in Node without Chromium, with that of a native run. Both run in turn;
# close other programs, since the results are wall-clock time.
bench-web: $(ENGINE)
	cargo build --release --quiet -p sparelane-scenario --example run
	cd web && node speed.mjs

# The processor time that a sweep adds to each of its runs, and the share of time in which its workers are active; fails
# above 5 ms or below 90 %.
bench-sweep: build
	$(BIN)/python benches/sweep_overhead.py

# Compares the digests of the experiments' simulations on one thread with those on 2, 3 and 7.
compare-threads: build
	$(BIN)/python benches/threads.py

# Compares the speed with that of ns-3 and, with HTSIM=FOLDER for a checkout of csg-htsim, of htsim. Fails if a target is
# missed.
bench-peers: build
	$(BIN)/python benches/peers.py

bench-controllers: build
	$(BIN)/python benches/controllers.py --ns3

bench-windows: build
	$(BIN)/python benches/windows.py --ns3

# Compares transfers with a plain QUIC stream and with the simulator's prediction in virtual time, and measures
# processor time over loopback. As root, also measures between network namespaces: transfers compared with the kernel's
# TCP, and the delay that a transfer adds to other TCP flows. Runs all measurements, then fails if one missed its target
# and lists those.
bench-wire: build
	$(BIN)/python benches/wire_report.py

## make clean: remove .venv, target and out
clean:
	rm -rf target $(VENV) $(OUT) benches/work web/build web/dist web/node_modules python/sparelane/play/page

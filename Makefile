# Everything a newcomer needs: `make run` shows the main result, `make test` passes the tests.
# Each target sets up what it needs; the environment lives in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Where `make run` puts figures and data.
OUT ?= out

# libbpf, which loads programs into the kernel, is built in where the libraries are that it needs.
LIBBPF := $(shell test "$$(uname)" = Linux && $${PKG_CONFIG:-pkg-config} --exists libelf zlib 2>/dev/null && echo libbpf)
# Whether it was when the package was last built: where the libraries have come or gone, it is built again.
BUILT_HOW := $(VENV)/.$(if $(LIBBPF),with,without)-libbpf

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml -o -name '*.bpf.o') Cargo.toml Cargo.lock .cargo/config.toml

# Where full results are saved, by any number of runs of `sparelane reproduce -o`, for `make results`.
FULL ?= out/full

# How many random scenarios `make explore` runs, and under which seed: a fresh one unless given.
N ?= 10000
SEED ?=
# The target that `make fuzz` runs, and for how long.
TARGET ?= acknowledgments
SECONDS ?= 600

.DEFAULT_GOAL := help

.PHONY: help run test test-all test-bpf test-linux test-linux-rc3 linux-controllers linux-rtcp linux-rc3-off linux-bpf bpf-objects explore fuzz build check \
	results goldens docs bench bench-peers bench-controllers bench-windows bench-wire clean

## make help: list the targets
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make run: reproduce one figure of the RC3 paper into out/
run: build
	$(BIN)/sparelane reproduce rc3/fig8-load --quick -o $(OUT)

# Tests that are marked `slow` belong to `make test-all` alone; all others belong to both. Those marked `machine` run one by
# one, after the others.
RUST_TESTS = cargo test --workspace --quiet $(if $(LIBBPF),--features sparelane-py/libbpf)
PYTHON_TESTS = $(BIN)/python -m pytest -q tests
PARALLEL = --numprocesses auto

## make test: run the tests, without the slow ones
test: build
	$(RUST_TESTS)
	$(PYTHON_TESTS) -m 'not machine and not slow' $(PARALLEL)
	$(PYTHON_TESTS) -m 'machine and not slow'

## make test-all: run all tests that need no kernel of their own
test-all: build
	$(RUST_TESTS)
	$(PYTHON_TESTS) -m 'not machine' $(PARALLEL)
	$(PYTHON_TESTS) -m machine

## make explore: run random scenarios (N=10000 SEED=7)
# Random scenarios; what fails is written to out/explore, as files for `sparelane run`.
explore:
	cargo run --quiet -p sparelane-scenario --example explore -- $(N) $(SEED)

## make fuzz: fuzz one target (TARGET=segments SECONDS=600)
# Needs the nightly toolchain and `cargo install cargo-fuzz --locked`.
fuzz:
	cd fuzz && cargo +nightly fuzz run -s none $(TARGET) -- -max_total_time=$(SECONDS)

## make test-bpf: run the tests of the BPF programs in the running kernel (root)
# Kernel tests of the BPF programs, in network namespaces of their own. Needs root, a kernel with BTF and a build with libbpf
# (`sparelane linux doctor`); fails where all of them were skipped.
test-bpf: build
	$(BIN)/python -m pytest -v -m kernel tests/test_linux_bpf.py --least-passed 1

## make test-linux: run scenarios on the real TCP of Linux; builds a kernel once
# Scenarios on the real TCP of Linux in virtual time, RTCP and the comparison of controllers among them, and the BPF programs
# in the running kernel. Builds a kernel of its own unless there is one, in some eight minutes of a processor; needs the packages
# that docs/linux.md names. Measures the host first, and takes the short set of tests on a slow one: LINUX_SET=full or short
# chooses. Fails if too few tests passed; those of BPF may be skipped, without root or if the kernel has no BTF.
LINUX_SET ?=
test-linux: build
	$(BIN)/sparelane linux build
	$(BIN)/python tests/linux_suite.py $(LINUX_SET)
	$(BIN)/python -m pytest -q -m kernel tests/test_linux_bpf.py --least-passed $(LEAST_BPF)

# How many kernel tests of the BPF programs have to pass in `make test-linux`: none where the kernel here lacks what they need.
LEAST_BPF ?= $(shell $(BIN)/sparelane linux doctor >/dev/null 2>&1 && echo 40 || echo 0)

# Each of the kernel's controllers beside ours, and Figs. 4 to 7 of the RTCP paper on Linux, into results/.
linux-controllers linux-rtcp: build
	$(BIN)/sparelane linux build
	$(BIN)/sparelane reproduce $(if $(findstring rtcp,$@),rtcp/testbed,linux/controllers) --check -o results

# RC3's patches without their option beside the stock kernel, packet by packet; builds both, some eight minutes of a processor
# each.
linux-rc3-off: build
	$(BIN)/python -m sparelane.papers.linux.rc3_off results/linux/rc3-off

# RTCP and RAPID in the kernel that runs, beside the simulator: windows, gaps and their cost. Needs root, and `perf` for the
# cost of the kernel's own controllers.
LINUX_BPF ?= results/linux/bpf
linux-bpf: build
	$(BIN)/python -m sparelane.papers.linux.bpf $(LINUX_BPF)

## make test-linux-rc3: run the tests of RC3 in the kernel; builds two kernels once
# RC3 in the kernel: builds that kernel, and the one without, and runs its tests, Figs. 15 to 18 of the paper and scripts of
# segments among them.
test-linux-rc3: build
	$(BIN)/sparelane linux build
	$(BIN)/sparelane linux build --rc3
	$(BIN)/python -m pytest -q tests/test_linux_rc3.py --least-passed 25
	$(BIN)/python -m pytest -q tests/test_linux_rc3_scripts.py --least-passed 35

# Compiles the BPF programs anew (clang, llvm), and notes of which sources they are.
bpf-objects:
	for program in $$(cd crates/bpf/programs && ls *.bpf.c); do \
		sh crates/bpf/programs/compile.sh $${program%.bpf.c} crates/bpf/objects/$${program%.c}.o || exit 1; done
	SPARELANE_WRITE_OBJECTS=1 cargo test --quiet -p sparelane-bpf --test objects objects_are_of_these_sources

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

$(VENV)/.built: $(VENV)/.environment $(BUILT_HOW) $(RUST_SOURCES) pyproject.toml
	PIP_QUIET=1 $(BIN)/maturin develop --release --quiet --extras dev,gym $(if $(LIBBPF),--features libbpf)
	touch $@

## make check: run formatters, linters and type checks
check: build
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(if $(LIBBPF),cargo clippy -p sparelane-bpf --features libbpf --all-targets --quiet -- -D warnings)
	$(BIN)/ruff format --check python tests benches docs
	$(BIN)/ruff check python tests benches docs
	$(BIN)/mypy

## make results: take saved results into results/ and write its pages (FULL=out/full)
# Takes rows, curves and figures of saved results into results/, and writes its pages; fails, once all is written, where a claim
# fails.
results: build
	cd $(FULL) && find . -name rows.csv -o -name manifest.json -o -name figure.png -o -path '*/curves/*.csv' | \
	  tar cf - -T - | tar xf - -C $(CURDIR)/results
	$(BIN)/sparelane report results --see docs/speed-and-ns3.md --check

## make goldens: write the digests of short runs anew
# Writes the digests of tests/goldens.json anew, and says which runs changed; and the index of the experiments.
goldens: build
	$(BIN)/python tests/test_goldens.py
	$(BIN)/python -m sparelane.papers.index

## make docs: write the documentation to docs/_build/html
# The documentation, into docs/_build/html; a warning is an error, and so is a link that leads nowhere.
docs: build $(VENV)/.docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

$(VENV)/.docs: pyproject.toml $(VENV)/.environment
	$(BIN)/pip install --quiet 'furo>=2024.8' 'myst-parser>=4.0' 'sphinx>=8.0'
	touch $@

## make bench: time the simulator
bench: build
	$(BIN)/sparelane bench

bench-peers: build
	$(BIN)/python benches/peers.py

bench-controllers: build
	$(BIN)/python benches/controllers.py --ns3

bench-windows: build
	$(BIN)/python benches/windows.py --ns3

# The wire beside a plain QUIC stream: times in virtual time, and beside the simulator's; processor time over loopback. Then, as
# root, between network namespaces: beside the kernel's TCP, too, and what a transfer costs TCP flows beside it.
# All is measured, whatever is missed; what was is told at the end, and fails.
bench-wire: build
	$(BIN)/python benches/wire_report.py

## make clean: remove .venv, target and out
clean:
	rm -rf target $(VENV) $(OUT) benches/work

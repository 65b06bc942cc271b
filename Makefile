# SPDX-License-Identifier: Apache-2.0
# The usual commands of development. `make` lists them.

CAPTURE ?= samples/office.pcap
ARGS ?=
BENCH ?=
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=

# A shell that was started before rustup was installed does not have its folder in PATH.
export PATH := $(PATH):$(HOME)/.cargo/bin

# Missing packages (of Debian and Ubuntu) that optional parts of the program need to build. These variables are expanded
# (`=`) when they are used, because `make test` may have installed packages by then. First, those of the xdp engine.
LACKED = $(strip $(if $(shell command -v clang),,clang) \
	$(if $(shell test -e /usr/include/libelf.h && echo here),,libelf-dev) \
	$(if $(shell test -e /usr/include/zlib.h && echo here),,zlib1g-dev))
# The xdp engine is left out if a package is missing. CI may not leave it out.
LEFT_OUT = $(and $(LACKED),$(if $(TURBOFLOW_CI),,not in CI))
FEATURES = $(if $(LEFT_OUT),,--features turboflow/kernel)
LAB_FEATURES = $(if $(LEFT_OUT),,--features turboflow-lab/kernel)
# nDPI identifies applications. Versions before 4.2 are not supported. CI may not leave it out, either.
LACKED_DPI = $(if $(shell pkg-config --exists 'libndpi >= 4.2' 2>/dev/null && echo here),,libndpi-dev)
DPI_FEATURES = $(if $(and $(LACKED_DPI),$(if $(TURBOFLOW_CI),,not in CI)),,--features turboflow/dpi)
# DPDK's software pipeline runs the P4 program on this machine. CI may not leave it out, either.
LACKED_DPDK = $(if $(shell pkg-config --exists libdpdk 2>/dev/null && echo here),,libdpdk-dev)
DPDK_FEATURES = $(if $(and $(LACKED_DPDK),$(if $(TURBOFLOW_CI),,not in CI)),,--features turboflow-swx/dpdk)
# Both are found with pkg-config, so without it both count as missing.
LACKED_PKG_CONFIG = $(if $(and $(LACKED_DPI)$(LACKED_DPDK),$(if $(shell command -v pkg-config),,lacked)),pkg-config)

# The FPGA engine is simulated if Verilator is installed. CI may not leave it out, either.
RTL_FEATURES = $(if $(or $(TURBOFLOW_CI),$(shell verilator --version 2>/dev/null)),--features turboflow/rtl)

# The Kafka client is compiled from source, which takes two minutes. Tests include it if OpenSSL's headers are
# installed, packages always do, and other builds do with KAFKA=1. CI may not leave it out, either.
LACKED_KAFKA = $(if $(shell pkg-config --exists openssl 2>/dev/null && echo here),,libssl-dev pkg-config)
KAFKA_FEATURES = $(if $(or $(TURBOFLOW_CI),$(if $(LACKED_KAFKA),,here)),--features turboflow/kafka)
ASKED_FEATURES = $(if $(KAFKA),--features turboflow/kafka)

TARGET := $(or $(CARGO_TARGET_DIR),target)
TURBOFLOW := $(TARGET)/release/turboflow
LAB := $(TARGET)/release/turboflow-lab
BENCH_CAPTURE := $(TARGET)/bench/zipf-10m.pcap
# Besides the main capture: one with whole packets and one of a scan, where other meters come closer.
BENCH_CAPTURES := $(BENCH_CAPTURE) $(TARGET)/bench/whole-2m.pcap $(TARGET)/bench/scan-5m.pcap

.DEFAULT_GOAL := help
.PHONY: help run test build deb query docs bench bench-files bench-export evaluation evaluation-quick fuzz sample p4 lint compare ci clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

run: build ## Meter a capture and look at it: samples/office.pcap, or CAPTURE=FILE ARGS="--biflow ..."
	$(TURBOFLOW) record -r $(CAPTURE) $(ARGS)

test: set-up test-tools ## All tests: units, properties, goldens, real captures, doc tests, house rules
	scripts/run-tests.sh --workspace $(FEATURES) $(LAB_FEATURES) $(DPDK_FEATURES) $(DPI_FEATURES) $(RTL_FEATURES) $(KAFKA_FEATURES)

build: set-up asked-kafka ## The turboflow program, optimised: target/release/turboflow, with turboflow-swx where libdpdk-dev is; KAFKA=1
	@test -e $(TURBOFLOW) || echo "make: building the program, about 3 minutes on two processors the first time" >&2
	cargo build --release --package turboflow $(FEATURES) $(DPI_FEATURES) $(ASKED_FEATURES) $(if $(DPDK_FEATURES),--package turboflow-swx $(DPDK_FEATURES))
	@$(SAY_LEFT_OUT)

deb rpm: KAFKA = 1
deb: build ## A Debian package: target/turboflow_VERSION_ARCH.deb; `make rpm` makes one of Fedora and its kin
	packaging/package.sh deb $(TURBOFLOW) $(TARGET)

.PHONY: rpm
rpm: build
	packaging/package.sh rpm $(TURBOFLOW) $(TARGET)

query: set-up ## The program behind `turboflow sql`: target/release/turboflow-query; Rust 1.94, many minutes the first time
	cargo build --release --package turboflow-sql

# A Python wheel that contains the program, made by maturin (from PyPI): target/wheels/turboflow-*.whl.
.PHONY: wheel
wheel: set-up
	scripts/wheel.sh $(TARGET)

docs: set-up ## API documentation of all crates: target/doc
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps $(FEATURES) $(LAB_FEATURES)

bench: lab ## Aggregator, pipeline, features, flood, generator: one JSON object a row; BENCH="aggregate --flows 1M" for a part
	$(LAB) bench --json $(BENCH)

bench-files: build $(BENCH_CAPTURES) ## Whole processes against nfpcapd, softflowd and argus: headers, whole packets, a scan
	scripts/install-test-tools.sh bench || echo "bench-files: goes on with the tools that are here" >&2
	@# argus 3.0.8 takes two minutes for the scan, and counts half of its packets.
	bench/files/run.sh $(BENCH_CAPTURES) --repetitions 5 --skip scan-5m:argus --turboflow $(TURBOFLOW)

bench-export: program-and-lab $(BENCH_CAPTURE) ## Sending flow records: encoding alone, softflowd side by side, live capture and tcpdump (root)
	scripts/install-test-tools.sh bench || echo "bench-export: goes on with the tools that are here" >&2
	bench/export/run.sh $(BENCH_CAPTURE) --turboflow $(TURBOFLOW) --lab $(LAB)

# Benchmarks of flow records into Kafka: encoding, the producer, and the whole program compared with goflow2.
.PHONY: bench-kafka
bench-kafka: set-up
	scripts/install-test-tools.sh tests
	cargo build --release --package turboflow $(FEATURES) --features turboflow/kafka
	cargo build --release --package turboflow-kafka --features kafka --example kafka_cost
	python3 bench/kafka/run.py --turboflow $(TURBOFLOW) --cost $(TARGET)/release/examples/kafka_cost

evaluation: program-and-lab ## The papers' evaluation again, under an hour: bench/runs/DATE-MACHINE-evaluation, docs/evaluation/report.md
	$(LAB) evaluation run --report docs/evaluation $(ARGS)

evaluation-quick: program-and-lab ## The evaluation within minutes, to see that it works: target/evaluation-quick
	rm -rf $(TARGET)/evaluation-quick
	$(LAB) evaluation run --quick --out $(TARGET)/evaluation-quick $(ARGS)

fuzz: set-up ## Every fuzz target for a minute (FUZZ_SECONDS=60), or FUZZ_TARGETS="packet pcap"
	FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh $(FUZZ_TARGETS)

sample: ## Record samples/ anew (root; Linux network namespaces); docs/samples.md says what is in them
	scripts/install-test-tools.sh samples
	scripts/record-sample.sh
	python3 scripts/make_cases.py

.PHONY: rtl-synth rtl-fmax rtl-prove rtl-cocotb
# Proves properties of the FPGA engine's modules with Yosys (from PyPI; takes a minute).
rtl-prove:
	scripts/rtl-prove.sh

# Tests single modules of the FPGA engine in Python, with cocotb (from PyPI) and Verilator; takes a minute.
rtl-cocotb:
	scripts/rtl-cocotb.sh

# Counts the resources that the FPGA engine needs in an UltraScale+ and in an ECP5 (Yosys from PyPI; takes minutes).
rtl-synth:
	scripts/rtl-synth.sh xcup ecp5

# Places and routes the FPGA engine in an ECP5, and reports its clock frequency (tools from PyPI; takes many minutes).
rtl-fmax:
	scripts/rtl-synth.sh route

# Recompiles the P4 programs with the compilers in PATH or in P4C_BIN=FOLDER; ARGS="pna/default.spec" selects some.
p4:
	scripts/p4_compile.py $(ARGS)

lint: set-up ## Formatting, clippy, scripts
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $(FEATURES) $(LAB_FEATURES) $(DPDK_FEATURES) $(DPI_FEATURES) $(RTL_FEATURES) $(KAFKA_FEATURES) -- -D warnings
	scripts/check-scripts.sh

compare: ## Two builds over every capture, byte for byte: BEFORE=path AFTER=path, ARGS="--quick" within 2 minutes
	@test -n "$(BEFORE)" -a -n "$(AFTER)" || { echo "make compare: say BEFORE=path AFTER=path" >&2; exit 2; }
	scripts/compare_programs.py $(BEFORE) $(AFTER) --report $(TARGET)/compare-programs $(ARGS)

ci: ## What has to pass before a change is merged; TURBOFLOW_CI=1: nothing may be skipped
	.ci/run

clean: ## Remove everything that was built
	cargo clean
	rm -rf fuzz/target fuzz/artifacts

.PHONY: set-up test-tools left-out
set-up:
	@scripts/set-up.sh

# Installs the tools of tests if it may (root on Debian or Ubuntu). Tests whose tools are missing are skipped.
test-tools:
	@scripts/set-up.sh tests

# One line that names all parts that the program is built without, and the command that installs what they need.
space := $(subst ,, )
LACKED_OF_ALL = $(strip $(LACKED) $(LACKED_DPI) $(LACKED_DPDK) $(LACKED_PKG_CONFIG))
LEFT_OUT_PARTS = $(strip $(if $(LACKED),the_xdp_engine_(--engine_xdp)) \
	$(if $(LACKED_DPI),applications_(--dpi,_nDPI_4.2_or_newer)) \
	$(if $(LACKED_DPDK),turboflow-swx_(--p4-pipeline_swx)))
SAY_LEFT_OUT = $(if $(LACKED_OF_ALL),echo "make: built without $(subst _, ,$(subst $(space),; ,$(LEFT_OUT_PARTS))); to have all: apt-get install $(LACKED_OF_ALL)" >&2,:)
left-out:
	@$(SAY_LEFT_OUT)

# With KAFKA=1, missing packages are an error: the Kafka client is not silently left out.
.PHONY: asked-kafka
asked-kafka:
	@$(if $(and $(KAFKA),$(LACKED_KAFKA)),echo "make: KAFKA=1 needs OpenSSL's headers: apt-get install $(LACKED_KAFKA)" >&2; exit 2,:)

# Only the laboratory, turboflow-lab.
.PHONY: lab
lab: set-up
	cargo build --release --package turboflow-lab $(LAB_FEATURES)

# Builds both with one command, so that their common dependencies are compiled only once: two commands would compile
# them with different features.
.PHONY: program-and-lab
program-and-lab: set-up
	cargo build --release --package turboflow --package turboflow-lab $(FEATURES) $(DPI_FEATURES) $(LAB_FEATURES)

# About 300,000 flows that begin and end, with the skew and packet trains of an Internet link. 64 bytes per packet are
# captured.
$(BENCH_CAPTURE): | build
	mkdir -p $(@D)
	$(TURBOFLOW) generate -w $@ --packets 10M --flows 200k --births-per-second 12k \
		--traffic zipf --train-length 5 --sizes imix --snap-length 64

$(TARGET)/bench/whole-2m.pcap: | build
	mkdir -p $(@D)
	$(TURBOFLOW) generate -w $@ --packets 2.1M --flows 2k --births-per-second 200 \
		--traffic zipf --train-length 5 --sizes 66:40,1514:60

$(TARGET)/bench/scan-5m.pcap: | build
	mkdir -p $(@D)
	$(TURBOFLOW) generate -w $@ --packets 5M --workload adversarial --attack single-packets --snap-length 64

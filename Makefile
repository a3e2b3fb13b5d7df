# What people type; the build itself is in CMakeLists.txt.
BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

.PHONY: all setup check check-all check-keras check-cluster check-gpu demo bench bench-gpu tune install format clean
all: $(BUILD)/build.ninja
	@$(if $(KEEL_DNNL),cmake -S . -B $(BUILD) --log-level=NOTICE -DKEEL_DNNL=$(KEEL_DNNL) >/dev/null)
	@cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/build.ninja: | setup
	@cmake -S . -B $(BUILD) -G Ninja --log-level=NOTICE $(if $(KEEL_DNNL),-DKEEL_DNNL=$(KEEL_DNNL))

setup:
	@sh tools/setup.sh

# GPUS='80;90': compile the kernels for these compute capabilities, instead of all. The build folder keeps
# that, also for make and make install, until GPUS names others.
check:
	@sh tools/setup.sh check
	@BUILD=$(BUILD) JOBS=$(JOBS) GPUS="$(GPUS)" bash tools/check.sh

# With every case of every sweep, and libFuzzer.
check-all:
	@KEEL_TEST_ALL=1 $(MAKE) --no-print-directory check check-keras

# Keel against the real Keras, which comes from PyPI, pinned, into the build folder. MODELS: those of
# keras.applications to compare, instead of one of each family. GRAPHS='SEED COUNT': those graphs
# by chance, instead of 20.
check-keras: all
	@cmake --build $(BUILD) -j $(JOBS) --target interop >/dev/null
	@BUILD=$(BUILD) bash tools/check_keras.sh $(abspath $(BUILD))/keel $(MODELS)

# The job script of docs/cluster.md in a real Slurm, which is started here and stopped again. Needs root.
# CASES='plain lost': those alone.
check-cluster:
	@sh tools/setup.sh cluster
	@$(MAKE) --no-print-directory all
	@cmake --build $(BUILD) -j $(JOBS) --target make_shapes >/dev/null
	@KEEL=$(abspath $(BUILD))/keel CASES="$(CASES)" bash tools/check_cluster.sh

# What only a GPU can show. Needs nvcc of CUDA 13, and a GPU with its driver. FITS: how many fits may
# not lose memory, instead of 1,000. TOOLS=none leaves compute-sanitizer out.
check-gpu:
	@sh tools/setup.sh check
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) JOBS=$(JOBS) FITS=$(FITS) TOOLS="$(TOOLS)" bash tools/check_gpu.sh

demo: all
	@KEEL=$(abspath $(BUILD))/keel bash tools/demo.sh

# The table of bench/README.md. PEERS: a Python with TensorFlow, PyTorch or JAX; BENCH: options, as --quick.
bench: all
	@cmake --build $(BUILD) -j $(JOBS) --target bench_epoch >/dev/null
	@python3 bench/run.py --keel $(abspath $(BUILD))/keel $(if $(PEERS),--peers $(PEERS)) $(BENCH)

# The table of GPUs in bench/README.md, beside the peers of the Python that PEERS names. Without a GPU it
# says in a line what is missing.
bench-gpu: all
	@python3 bench/run.py --gpu --keel $(abspath $(BUILD))/keel $(if $(PEERS),--peers $(PEERS)) $(BENCH)

# Which kernels are the fastest on this kind of processor: written to a table that is committed, and
# taken up by the next make.
tune: all
	@cmake --build $(BUILD) -j $(JOBS) --target bench_tune
	@$(BUILD)/bench/bench_tune src/graph/tuned.inc

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

format:
	@clang-format -i $$(git ls-files '*.c' '*.h' '*.cu' '*.cpp')

clean:
	rm -rf $(BUILD)

#!/bin/bash
# check_cuda.sh BUILD [CMAKE-ARGUMENT...]: every kernel for CUDA by nvcc, for the GPUs that the build is for:
# without a warning and without a register that is spilled.
# Where there is no nvcc it says so, in one line: the emulator still runs the kernels.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 2
build=$1
shift
if ! command -v nvcc >/dev/null && [[ ! -x /usr/local/cuda/bin/nvcc ]]; then
    echo "(nvcc was not found, so the kernels for CUDA were compiled for the emulator only)"
    exit 0
fi
cmake -S . -B "$build" -G Ninja --log-level=NOTICE "$@" &&
    cmake --build "$build" -j "${JOBS:-2}" --target cuda-kernels -- -k 0 || exit 1
bad=0 n=0
for file in src/ops/cuda/*.cu src/train/cuda/*.cu src/optimizers/cuda/*.cu; do
    [[ -e $file ]] || continue
    log=$build/cuda/$(basename "$file" .cu).log
    n=$((n + 1))
    awk -v file="$file" '
        /Function properties for|Compiling entry function/ { name = $0; sub(/.*(for|function) /, "", name) }
        /bytes stack frame/ && !/0 bytes spill stores, 0 bytes spill loads/ { print file ": " name ":" $0; bad = 1 }
        /warning/ { print file ": " $0; bad = 1 }
        END { exit bad }' "$log" || bad=1
done
gpus=$(sed -n 's/^KEEL_CUDA_GPUS:[A-Z]*=//p' "$build/CMakeCache.txt")
((bad)) || echo "(nvcc: $n files for sm_${gpus//;/, sm_}, no warning, no spill)"
exit $bad

#!/bin/bash
# check_gpu.sh: what only a GPU can show. BUILD: the build folder. Each stage prints a line; the last line is
# 'N passed, N failed'. A machine without nvcc, driver or GPU is told what it lacks, with exit code 77.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 2
BUILD=$(realpath "${BUILD:-build}") JOBS=${JOBS:-$(nproc)}
keel=$BUILD/keel passed=0 failed=0
export KEEL_TEST_ALL=1
logs=$BUILD/check/gpu
mkdir -p "$logs"

"$keel" new mlp --input 8 --classes 2 -o "$logs/probe.keras" >/dev/null || exit 2
why=$("$keel" plan "$logs/probe.keras" --rows 8 --batch-size 4 --devices cuda:0 2>&1 >/dev/null)
[[ -f $BUILD/libkeel_cuda.so ]] || why="the plug-in for GPUs was not built: no nvcc of CUDA 13 was found"
if [[ $why ]]; then
    echo "no GPU was tried: $why"
    echo "0 passed, 0 failed"
    exit 77
fi

# Each op in a process of its own: what a kernel breaks on a GPU stays broken until its process ends.
kernels()
{
    local folder=$logs/kernels
    rm -rf "$folder" && mkdir -p "$folder" || return 1
    "$BUILD/tests/gpu_kernels" --list | sort -u |
        xargs -P "$JOBS" -I {} sh -c '"$0" {} >"$1/{}.log" 2>&1 || echo {}' "$BUILD/tests/gpu_kernels" "$folder" |
        sort >"$folder.failed"
    while read -r op; do echo "== $op"; grep -aE '^\[  FAILED|ERROR|rror:|: ' "$folder/$op.log" | tail -n 6; done <"$folder.failed"
    cat "$folder"/*.log | awk '/^\[  PASSED  \] [0-9]+ test/ { passed += $4 }
        END { printf "[  PASSED  ] %d test(s).\n", passed }'
    local n
    n=$(wc -l <"$folder.failed")
    ((n == 0)) || { echo " $n FAILED TEST(S): $(paste -sd' ' "$folder.failed")"; return 1; }
}

stage() # NAME COMMAND...: the command's own tests are counted if it says how many passed
{
    local name=$1 start=$SECONDS n=1 bad=0 status
    shift
    "$@" >"$logs/$name.log" 2>&1
    status=$?
    if grep -qaE '^\[  PASSED  \] [0-9]+ test' "$logs/$name.log"; then
        n=$(grep -aoE '^\[  PASSED  \] [0-9]+' "$logs/$name.log" | tail -n 1 | grep -oE '[0-9]+$')
        bad=$(grep -aoE '^ ?[0-9]+ FAILED TEST' "$logs/$name.log" | grep -oE '[0-9]+' || echo 0)
    fi
    ((status == 0 || bad > 0)) || { n=0 bad=1; }
    passed=$((passed + n)) failed=$((failed + bad))
    printf '%-28s %-8s %4d passed, %d failed %5d s  %s\n' "$name" "$( ((bad)) && echo FAILED || echo ok)" "$n" "$bad" \
        $((SECONDS - start)) "$( ((bad)) && echo "$logs/$name.log")"
    ((bad == 0)) || tail -n 5 "$logs/$name.log" | sed 's/^/    /'
}

# The same fit from the command line on one GPU and on parts of it: one file, bit for bit.
one_file()
{
    local folder=$logs/files n
    rm -rf "$folder" && mkdir -p "$folder" && cd "$folder" || return 1
    "$keel" new "$1" --input "$2" --classes 10 -o m.keras || return 1
    for n in 1 2 3 4; do
        "$keel" fit m.keras --data "synthetic(x=float32(${2//x/,}),y=int(10),rows=203)" --batch-size 48 --epochs 2 \
            --seed 7 --reproducible --devices "cuda:0x$n" -o "$n.keras" || return 1
        "$keel" predict "$n.keras" --data "synthetic(x=float32(${2//x/,}),y=int(10),rows=203)" --devices cuda:0 \
            --reproducible -o "$n.npy" || return 1
        cmp 1.npy "$n.npy" || return 1
    done
}

cmake --build "$BUILD" -j "$JOBS" --target gpu-tests >"$logs/build.log" 2>&1 ||
    { tail -n 20 "$logs/build.log"; echo "0 passed, 1 failed"; exit 1; }
stage kernels kernels
stage scores "$BUILD/tests/gpu_scores"
stage fits env KEEL_GPU_FITS="${FITS:-1000}" "$BUILD/tests/gpu_fits"
stage one-file-mlp one_file mlp 784
stage one-file-cnn one_file cnn 28x28x1
if [[ ${TOOLS:-} != none ]]; then
    sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer)
    [[ $sanitizer ]] || echo "(no compute-sanitizer: its four tools did not run)"
    for tool in ${sanitizer:+memcheck racecheck initcheck synccheck}; do
        stage "$tool" env KEEL_SANITIZED=1 "$sanitizer" --tool $tool --error-exitcode 9 "$BUILD/tests/gpu_kernels"
    done
fi
echo "$passed passed, $failed failed"
((failed == 0))

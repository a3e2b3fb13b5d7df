#!/bin/bash
# check.sh [STAGE...]: what must hold of a change, by `make check`. Stages: format includes headers layers
# cuda tests asan tsan fuzz. Each prints one line; logs lie in BUILD/check. The last line is 'N passed, N
# failed': cmocka's tests of all builds, test scripts, fuzz targets, and one for each of the first five
# stages and each build.
#
# `make check-all` sets KEEL_TEST_ALL=1, and takes more than an hour: sweeps take all of their cases
# (tests/sweep.h), AddressSanitizer also sees the kernels for CUDA on the emulator, and fuzz targets run by
# libFuzzer for FUZZ_SECONDS instead of reading their corpus and changed copies of it. GPUS='80;90': compute
# capabilities that nvcc compiles for, instead of all.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 2
build=$(mkdir -p "${BUILD:-build}/check" && cd "${BUILD:-build}" && pwd) || exit 2
logs=$build/check
export JOBS=${JOBS:-2}
all=${KEEL_TEST_ALL:-}
gpus=() # for cmake
[[ ${GPUS:-} ]] && gpus=("-DKEEL_CUDA_GPUS=$GPUS")
passed=0 failed=0

report() # NAME BEGIN PASSED FAILED [NOTE]: the stage's line, and its part of the sum
{
    passed=$((passed + $3)) failed=$((failed + $4))
    local verdict=ok
    (($4 == 0)) || verdict=FAILED
    printf '%-28s %-6s %5d passed, %d failed %5d s  %s\n' "$1" $verdict "$3" "$4" $((SECONDS - $2)) "${5:-}"
}

script() # NAME COMMAND...: a stage that is one command; its output is shown if it fails
{
    local name=$1 begin=$SECONDS
    shift
    if "$@" >"$logs/$name.log" 2>&1; then
        report "$name" $begin 1 0
    else
        head -n 60 "$logs/$name.log"
        report "$name" $begin 0 1
    fi
}

compile() # NAME DIR TARGETS CMAKE-ARGUMENT...: configure and build
{
    local name=$1 dir=$2 targets=$3 begin=$SECONDS
    shift 3
    if cmake -S . -B "$dir" -G Ninja "$@" >"$logs/build-$name.log" 2>&1 &&
        cmake --build "$dir" -j "$JOBS" --target $targets -- -k 0 >>"$logs/build-$name.log" 2>&1; then
        report "build $name" $begin 1 0
    else
        grep -aE -A 3 'error:|undefined reference|FAILED:|CMake Error' "$logs/build-$name.log" |
            grep -avE '^(\[|--$|/usr/bin/(cc|clang))' | head -n 60
        report "build $name" $begin 0 1 "$logs/build-$name.log"
    fi
}

programs() # NAME DIR [TEST...]: run the tests of a build
{
    local name=$1 dir=$2 begin=$SECONDS p f
    shift 2
    TAG=$name bash tools/run_tests.sh "$dir" "$@" | tee "$logs/run-$name.log" | grep -vE '^[0-9]+ passed, '
    read -r p _ f _ < <(tail -n 1 "$logs/run-$name.log")
    report "$name" $begin "${p:-0}" "${f:-1}"
}

# The names of the programs about threads: by their own name, and those listed in tests/threads.list.
threaded()
{
    {
        (cd tests && ls test_*_threads.c | sed 's/\.c$//')
        grep '^test_' tests/threads.list | if [[ $all ]]; then cat; else grep -v ' all$'; fi | cut -d' ' -f1
    } | sort -u
}

check_format()
{
    clang-format --dry-run -Werror $(find src include cli mpi tests examples bench -name '*.[ch]' -o -name '*.cu' -o -name '*.cpp' 2>/dev/null)
}

# Each fuzz target of the build DIR by a command in which {} is its name and $corpus its corpus.
fuzz() # DIR COMMAND
{
    local begin=$SECONDS p=0 f=0 name names=()
    for name in tests/fuzz/fuzz_*.c; do names+=("$(basename "$name" .c)"); done
    for name in "${names[@]}"; do
        rm -rf "$logs/$name" && mkdir -p "$logs/$name/new" "$logs/$name/tmp"
        echo "$name"
    done | xargs -P "$JOBS" -I{} bash -c '
        corpus=tests/fuzz/corpus/$(echo {} | sed s/^fuzz_//)
        [[ -d $corpus ]] || corpus=
        export KEEL_TEST_TMP='"$logs"'/{}/tmp LSAN_OPTIONS=suppressions=tools/lsan.supp:print_suppressions=0
        timeout -k 10 120 '"$1/fuzz/{} $2"' >'"$logs"'/{}/log 2>&1
        echo $? >'"$logs"'/{}/status'
    for name in "${names[@]}"; do
        if [[ $(cat "$logs/$name/status" 2>/dev/null) == 0 ]]; then
            p=$((p + 1))
        else
            f=$((f + 1))
            echo "--- $name failed, end of $logs/$name/log:"
            tail -n 40 "$logs/$name/log"
        fi
    done
    report fuzz $begin $p $f
}

stages=("$@")
((${#stages[@]})) || stages=(format includes headers layers cuda tests asan tsan fuzz)
for stage in "${stages[@]}"; do
    case $stage in
    format) script format check_format ;;
    includes) script includes sh tools/check_includes.sh ;;
    headers) script headers sh tools/check_headers.sh ;;
    layers) script layers sh tools/check_layers.sh ;;
    cuda) script cuda bash tools/check_cuda.sh "$build" "${gpus[@]}" && tail -n 1 "$logs/cuda.log" ;;
    tests)
        compile tests "$build" "all tests examples bench" "${gpus[@]}"
        SCRIPTS=1 programs tests "$build"
        names=()
        for name in $(grep -h '^test_' tests/onednn.list); do
            [[ -e $build/tests/${name}_debian ]] && names+=("${name}_debian")
        done
        if ((${#names[@]})); then
            programs debian-onednn "$build" "${names[@]}"
        else
            echo "(oneDNN 3.2 was not fetched, so there is one oneDNN to test)"
        fi
        ;;
    asan)
        compile asan "$build/asan" tests -DKEEL_SANITIZE=address "-DKEEL_DNNL_DIR=$build/onednn" \
            "-DKEEL_EMULATOR=$([[ $all ]] && echo ON || echo OFF)"
        WITHOUT=$([[ $all ]] || echo numbers.list) TIMEOUT=600 programs asan "$build/asan"
        # keel itself as several processes; what the MPIs lose is named in
        # tests/mpi/lsan.supp. No command of keel ends with 99, so a leak is seen also where one fails
        if [[ -e $build/asan/tests/libkeel_keep_open.so ]]; then
            LD_PRELOAD=$build/asan/tests/libkeel_keep_open.so LSAN_OPTIONS=suppressions=$PWD/tests/mpi/lsan.supp:print_suppressions=0 \
                ASAN_OPTIONS=detect_leaks=1:verify_asan_link_order=0:fast_unwind_on_malloc=0:exitcode=99 TIMEOUT=600 \
                programs asan-ranks "$build/asan" test_mpirun.sh test_leaking_ranks.sh
        fi
        ;;
    tsan)
        compile tsan "$build/tsan" "threads" -DKEEL_SANITIZE=thread "-DKEEL_DNNL_DIR=$build/onednn"
        names=()
        for name in $(threaded); do
            # without oneDNN all code is seen; with it too where the calls of it are what runs
            [[ -e $build/tsan/tests/${name}_own ]] && names+=("${name}_own")
            [[ -e $build/tsan/tests/${name}_own && $name != test_program && $name != test_train ]] || names+=("$name")
        done
        if ((${#names[@]})); then TIMEOUT=600 programs tsan "$build/tsan" "${names[@]}"; fi
        ;;
    fuzz)
        if [[ $all ]]; then
            compile fuzz "$build/fuzz" fuzz -DKEEL_SANITIZE=fuzzer -DCMAKE_C_COMPILER=clang-14 -DKEEL_DNNL=OFF
            fuzz "$build/fuzz" "-max_total_time=${FUZZ_SECONDS:-5} -timeout=20 -rss_limit_mb=3000 \
                -artifact_prefix=$logs/{}/ $logs/{}/new \$corpus"
        else
            compile fuzz "$build/asan" fuzz -DKEEL_SANITIZE=address "-DKEEL_DNNL_DIR=$build/onednn"
            fuzz "$build/asan" '300 $corpus'
        fi
        ;;
    *)
        echo "check: no stage named '$stage'" >&2
        exit 2
        ;;
    esac
done
echo "$passed passed, $failed failed"
((failed == 0))

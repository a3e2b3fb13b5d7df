#!/bin/bash
# run_tests.sh BUILD [NAME...]: run the test programs BUILD/tests/NAME (default: every tests/test_*.c but
# those that the file WITHOUT lists, and every tests/test_*.sh where SCRIPTS=1), JOBS at a time, and count
# cmocka's tests. A program that crashes, hangs, leaks, is missing or runs no test counts as one failure;
# one whose tests are all skipped is named. Last line: 'N passed, N failed'.
#
# Without a sanitizer, what failed runs once more by itself: a test that passes then depends on what else
# the machine does. It counts as passed, and is named. A sanitizer's finding stays one.
#
# A test runs in the folder tests/, with KEEL_TEST_TMP an empty scratch folder, KEEL the command,
# KEEL_BUILD the build folder. A script counts as one test; exit 77 means skipped.
set -u
cd "$(dirname "$0")/../tests" || exit 2
root=$(cd .. && pwd)

one() # NAME: run it, leave NAME.log and NAME.count ("passed failed seconds") in $KEEL_BUILD/check/$TAG
{
    local name=$1 dir=$KEEL_BUILD/check/$TAG program=$KEEL_BUILD/tests/$1 status passed failed skipped begin
    local -a before=()
    [[ $name == *.sh ]] && program="bash $root/tests/$name"
    if [[ $TAG == tsan ]]; then # its shadow memory wants addresses that are not random
        setarch "$(uname -m)" -R true 2>/dev/null && before=(setarch "$(uname -m)" -R)
        export TSAN_OPTIONS=exitcode=66
        # oneDNN's OpenMP is not instrumented; the program without oneDNN needs no excuse
        [[ $name == *_own ]] || TSAN_OPTIONS+=:suppressions=$root/tools/tsan.supp
    fi
    KEEL_TEST_TMP=$(mktemp -d "${TMPDIR:-/tmp}/keel-test.XXXXXX") && export KEEL_TEST_TMP
    begin=$SECONDS
    # a crash loses what stdout still buffers; preloading does not go with sanitizers
    [[ $TAG == tests && $name != *.sh ]] && before=(stdbuf -oL)
    (timeout -k 10 "$TIMEOUT" "${before[@]}" $program) >"$dir/$name.log" 2>&1 </dev/null
    status=$?
    rm -rf "$KEEL_TEST_TMP"
    if [[ $name == *.sh ]]; then
        passed=$((status == 0)) failed=$((status != 0 && status != 77))
        [[ $status == 77 ]] && echo "$name: skipped: $(tail -n 1 "$dir/$name.log")"
    else
        read -r passed failed skipped < <(awk '
            match($0, /\[  PASSED  \] [0-9]+ test/) { p += substr($0, RSTART + 13) }
            match($0, /\[  FAILED  \] [0-9]+ test/) { f += substr($0, RSTART + 13) }
            match($0, /\[  SKIPPED \] [0-9]+ test/) { s += substr($0, RSTART + 13) }
            END { print p + 0, f + 0, s + 0 }' "$dir/$name.log")
        ((status == 124 || status == 137)) && echo "no end within $TIMEOUT s" >>"$dir/$name.log"
        ((status != 0 && failed == 0)) && failed=1
        ((passed + failed + skipped == 0)) && failed=1 && echo "no test was run" >>"$dir/$name.log"
        ((passed + failed == 0)) && echo "$name: skipped: $(sed -n 's/^\[  SKIPPED \] \([a-z_0-9]*\)$/\1/p' "$dir/$name.log" | head -n 1)"
    fi
    echo "$passed $failed $((SECONDS - begin))" >"$dir/$name.count"
    if ((failed)); then
        echo "--- $TAG: $name failed (exit status $status), end of $dir/$name.log:"
        grep -aE '^ERROR|\[  (ERROR|FAILED) |^(==|SUMMARY|WARNING:)|error:|Error' "$dir/$name.log" | head -n 30
        tail -n 25 "$dir/$name.log"
    fi
}

if [[ ${1:-} == --one ]]; then
    one "$2"
    exit 0
fi
KEEL_BUILD=$(cd "$root" && cd "$1" && pwd) || exit 2
shift
export KEEL_BUILD KEEL=$KEEL_BUILD/keel TAG=${TAG:-tests} TIMEOUT=${TIMEOUT:-300}
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$root/tools/lsan.supp:print_suppressions=0}
export XDG_CACHE_HOME=/proc/none # what keel says once to a person is said to no test
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
mkdir -p "$KEEL_BUILD/check/$TAG"
rm -f "$KEEL_BUILD/check/$TAG"/*

names=("$@")
if ((${#names[@]} == 0)); then
    shopt -s nullglob
    for f in test_*.c; do
        [[ ${WITHOUT:-} ]] && grep -qx "${f%.c}" "$WITHOUT" && continue
        if ! reason=$(grep "^${f%.c} " "$KEEL_BUILD/tests.left_out" 2>/dev/null); then
            names+=("${f%.c}")
        elif [[ ${reason#* } ]]; then
            echo "${f%.c}: left out: ${reason#* }"
        fi
    done
    [[ ${SCRIPTS:-0} == 1 ]] && names+=(test_*.sh)
fi
if ((${#names[@]} == 0)); then
    echo "0 passed, 0 failed"
    exit 0
fi
printf '%s\0' "${names[@]}" | xargs -0 -n 1 -P "${JOBS:-2}" bash "$root/tools/run_tests.sh" --one
if [[ $TAG == tests ]]; then
    for count in $(awk '$2 > 0 { print FILENAME }' "$KEEL_BUILD/check/$TAG"/*.count); do
        name=$(basename "$count" .count)
        mv "$KEEL_BUILD/check/$TAG/$name.log" "$KEEL_BUILD/check/$TAG/$name.first"
        one "$name"
        if awk '{ exit $2 > 0 }' "$count"; then
            echo "--- $TAG: $name did not pass beside other tests, and passed alone: see $name.first"
        fi
    done
fi
cat "$KEEL_BUILD/check/$TAG"/*.count |
    awk '{ p += $1; f += $2 } END { printf "%d passed, %d failed\n", p, f; exit f > 0 }'

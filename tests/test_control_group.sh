#!/bin/bash
# A fit with images in a control group with little memory: what does not fit is refused before step 1, with
# the bytes that it lacks; with those and a little more it lives. Needs a control group of version 2 that has
# the memory, and in which this process may make others: its own, or that of KEEL_TEST_CGROUP.
set -u
cd "$KEEL_TEST_TMP" || exit 2
failed=0

skip()
{
    echo "skipped: $*"
    exit 77
}

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}

group=${KEEL_TEST_CGROUP:-}
if [[ -z $group ]]; then
    mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    [[ -n $mount ]] || skip "no control groups of version 2 are mounted"
    group=$mount$(sed -n 's/^0:://p' /proc/self/cgroup)
fi
grep -qw memory "$group/cgroup.controllers" 2>/dev/null || skip "the control group $group does not have the memory"
own=$group/keel-test-$$ shared=
mkdir "$own" 2>/dev/null || skip "no control group can be made in $group"
leave()
{
    rmdir "$own"
    [[ -z $shared ]] || echo -memory >"$group/cgroup.subtree_control"
}
trap leave EXIT
if [[ ! -e $own/memory.max ]]; then
    echo +memory 2>/dev/null >"$group/cgroup.subtree_control" && shared=1
    [[ -e $own/memory.max ]] || skip "the control group $group shares its memory with none below it"
fi
echo 0 2>/dev/null >"$own/memory.swap.max"

# fit BYTES: run a fit in a group of so many bytes; its exit code is in $code.
fit()
{
    echo "$1" >"$own/memory.max" || fail "memory.max $1"
    rm -f o.keras
    (echo "$BASHPID" >"$own/cgroup.procs" &&
        exec "$KEEL" fit m.keras --data shapes --batch-size 16 --epochs 2 --devices cpu:0 -o o.keras >out.txt 2>err.txt)
    code=$?
}

# number TEXT: the number in err.txt behind or before these words
number()
{
    sed -nE "s/.*$1.*/\1/p" err.txt
}

refused()
{
    [[ $code == 2 && $(wc -l <err.txt) == 1 ]] || fail "$1 bytes: exit code $code: $(head -c 300 err.txt)"
    grep -q 'the control group .* leaves .* needs .* more' err.txt || fail "$1 bytes: $(head -c 300 err.txt)"
    [[ -z $(ls | grep interrupted) ]] || fail "$1 bytes: a step was run"
}

"$KEEL_BUILD/make_shapes" shapes 200 5 >/dev/null || fail "make_shapes"
"$KEEL" new cnn --input 100,100,3 --classes 10 -o m.keras >/dev/null || fail "keel new"
fit $((512 << 20))
[[ $code == 0 ]] || fail "with much memory: exit code $code: $(head -c 300 err.txt)"
few=$((40 << 20))
fit $few
refused $few
lacks=$(($(number 'needs ([0-9]+) more') - $(number 'leaves ([0-9]+) bytes')))
((lacks > 0)) || fail "it lacks $lacks bytes: $(cat err.txt)"
fit $((few + lacks - (2 << 20)))
refused $((few + lacks - (2 << 20)))
fit $((few + lacks + (2 << 20)))
[[ $code == 0 && -s o.keras ]] || fail "$((few + lacks + (2 << 20))) bytes: exit code $code: $(head -c 300 err.txt)"
grep -q '^oom_kill 0' "$own/memory.events" || fail "the system killed a fit: $(cat "$own/memory.events")"
exit $((failed > 0))

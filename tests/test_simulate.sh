#!/bin/bash
# keel simulate as people type it: the table, JSON, both pictures, and each wrong option.
set -u
here=$PWD
cd "$KEEL_TEST_TMP" || exit 2
failed=0

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}

want() # CODE PATTERN ARGUMENT...: an error is one line that begins with "keel"
{
    local code=$1 pattern=$2 got
    shift 2
    "$KEEL" simulate "$@" >out.txt 2>err.txt
    got=$?
    ((got == code)) || fail "$*: exit code $got, not $code: $(head -c 300 err.txt)"
    grep -qE -e "$pattern" out.txt err.txt || fail "$*: nothing like '$pattern' in: $(head -c 600 out.txt err.txt)"
    ((code == 0)) && return
    [[ $(wc -l <err.txt) == 1 ]] || fail "$*: the error is not one line: $(head -c 600 err.txt)"
    grep -q '^keel simulate' err.txt || fail "$*: the error does not say who speaks: $(cat err.txt)"
}

"$KEEL" new mlp --input 12 --classes 3 -o m.keras >new.txt 2>&1 || fail "keel new: $(cat new.txt)"
few=(--seconds 0.000001 --devices cpu:0 --network 10Gbit,20us)

# ---- what it gives ------------------------------------------------------------------------------
want 0 '^ +1 +64 .* 100.0%' m.keras --batch-size 64 --machines 2,4-8 "${few[@]}"
[[ $(grep -cE '^ +[0-9]+ +[0-9,]+ ' out.txt) == 4 ]] || fail "not four lines: $(cat out.txt)"
grep -q 'A prediction' out.txt || fail "it does not say that it predicts"
grep -q '10 Gbit/s and 20 us' out.txt || fail "it does not say of which network"
want 0 '^ +3 +5 ' m.keras --batch-size-per-process 5 --machines 3 "${few[@]}"
want 0 '^ +2 +16 ' m.keras --batch-size 64 --machines 2 --processes-per-machine 2 "${few[@]}"
want 0 '^note: this machine has' m.keras --batch-size 64 --machines 1 --processes-per-machine 1024 "${few[@]}"
want 0 '^ +1024 +1 ' m.keras --batch-size 64 --machines 1024 "${few[@]}"
want 0 '^ +2 ' m.keras --batch-size 64 --machines 2 --reproducible "${few[@]}"
want 0 'mixed_bfloat16' m.keras --batch-size 64 --machines 2 --dtype mixed_bfloat16 "${few[@]}"

want 0 'gradients travel as bf16' m.keras --batch-size 64 --machines 2 --compress bf16 "${few[@]}"
want 0 '"compress": "bf16", "shard_optimizer": false, "one": ' m.keras --batch-size 64 --machines 2 --compress bf16 --json "${few[@]}"
want 0 "the optimizer's state in parts" m.keras --batch-size 64 --machines 3 --shard-optimizer "${few[@]}"
want 0 '"shard_optimizer": true, "one": ' m.keras --batch-size 64 --machines 2 --shard-optimizer --json "${few[@]}"
want 0 '"points": \[\{"machines": 2, "processes": 2, "batch": 64, "rows": 32,' m.keras --batch-size 64 --machines 2 --json "${few[@]}"
[[ $(wc -l <out.txt) == 1 && ! -s err.txt ]] || fail "JSON is not one line alone"
want 0 '^picture +c.svg' m.keras --batch-size 64 --machines 1-4 -o c.svg "${few[@]}"
want 0 '^picture +c.html' m.keras --batch-size 64 --machines 4 -o c.html "${few[@]}"
for f in c.svg c.html; do
    grep -q '^</svg>' $f || fail "$f has no picture"
    grep -qi 'nan\|inf' $f && fail "$f: a number is missing"
    grep -q '<script' $f && fail "$f has a script"
done
grep -q '<td>4</td>' c.html || fail "c.html has no table"
cp m.keras '<b>.keras'
want 0 'picture' '<b>.keras' --batch-size 64 --machines 2 -o c.svg "${few[@]}"
grep -q '<b>' c.svg && fail "a name of a file is not escaped"

# ---- what is refused ----------------------------------------------------------------------------
want 2 'give either --batch-size' m.keras
want 2 'give either --batch-size' m.keras --batch-size 5 --batch-size-per-process 5
for text in '' 0 1025 1,,2 4-2 2- a 1-4x 1,2,; do
    want 2 "^keel simulate: --machines '$text'" m.keras --batch-size 64 --machines "$text"
done
want 2 'more than 64 numbers' m.keras --batch-size 64 --machines "$(seq -s, 1 65)"
want 2 '600 processes on each of 2 machines' m.keras --batch-size 64 --machines 2 --processes-per-machine 600
want 2 '^keel simulate: --network: .25GB. is not a rate' m.keras --batch-size 64 --network 25GB,5us
want 2 '--seconds 0' m.keras --batch-size 64 --seconds 0
want 2 'must end in .svg or .html' m.keras --batch-size 64 -o curve.png
want 1 'not writable' m.keras --batch-size 64 -o no/such/curve.svg
want 2 'shards needs --reproducible' m.keras --batch-size 64 --shards 4
want 2 '32 processes with 1 devices each are more than the 16 shards' m.keras --batch-size 64 --machines 32 --devices cpu:0 --reproducible
want 1 'absent.keras' absent.keras --batch-size 64
want 2 '--compress is for several processes, of which --machines' m.keras --batch-size 64 --machines 1 --compress bf16
want 2 '--compress bf16 and --reproducible' m.keras --batch-size 64 --machines 2 --compress bf16 --reproducible
want 2 '--shard-optimizer is for several processes, of which --machines' m.keras --batch-size 64 --machines 1 --shard-optimizer
want 2 "fp16" m.keras --batch-size 64 --machines 2 --compress fp16
want 2 'cpu:x' m.keras --batch-size 64 --devices cpu:x
((failed == 0)) || exit 1

#!/bin/bash
# A reader of keel's output that has stopped reading, as mpirun of Open MPI does after Ctrl-C: it holds up a
# run until the first signal and no longer, and what was learned is saved. Nothing is lost while it reads slowly.
set -u
cd "$KEEL_TEST_TMP" || exit 2
failed=0
DATA='synthetic(x=float32(4),y=int(3),rows=16)' # one step an epoch

fail()
{
    echo "error: $case: $*"
    failed=$((failed + 1))
}

"$KEEL" new mlp --input 4 --classes 3 --sizes 8 -o m.keras >/dev/null || exit 2
mkfifo pipe
fit=(fit m.keras --data "$DATA" --batch-size 16 --seed 7 --devices cpu:0)

# held SIGNAL... : a fit that waits for its reader gets them; its exit code is $got, its time $took ms
held()
{
    local n=0 last=-1 begin
    exec 7<>pipe # a reader that does not read
    "$KEEL" "${fit[@]}" --epochs 2000000 --history "$case.csv" -o "$case.keras" >pipe 2>&1 &
    pid=$!
    for _ in $(seq 100); do # until its history does not grow any more
        n=$(cat "$case.csv" 2>/dev/null | wc -l)
        ((n > 100 && n == last)) && break
        last=$n
        sleep 0.2
    done
    ((n > 100 && n == last)) || fail "a pipe that is full does not hold up the run ($n epochs)"
    begin=$(date +%s%N)
    for signal; do
        kill -"$signal" $pid
        sleep 0.05
    done
    for _ in $(seq 100); do
        kill -0 $pid 2>/dev/null || break
        sleep 0.05
    done
    took=$((($(date +%s%N) - begin) / 1000000))
    kill -KILL $pid 2>/dev/null && fail "no end within 5 s of $*"
    wait $pid 2>/dev/null
    got=$?
    exec 7<&-
    echo "$case: $n epochs, ended $took ms after $*"
    ((took < 2000)) || fail "ended only after $took ms"
}

trained() # FILE CODE
{
    ((got == $2)) || fail "exit code $got, not $2"
    "$KEEL" inspect "$1" 2>&1 | grep -qE '[1-9][0-9,]* steps? done' || fail "$1 is not a model that was trained: $(ls)"
}

case=interrupt
held INT
trained interrupt.keras 130
case=terminate
held TERM
trained terminate.interrupted.keras 143
case=twice # the second one saves from another thread, unless the first was enough
held INT INT
trained "$(ls twice.keras twice.interrupted.keras 2>/dev/null | head -n 1)" 130

case="a slow reader"
"$KEEL" "${fit[@]}" --epochs 2000 -o slow.keras 2>&1 >pipe | cat >slow.err &
(sleep 0.5 && cat) <pipe >slow.out
wait
(($(grep -c '^epoch' slow.out) == 2000)) || fail "$(grep -c '^epoch' slow.out) lines of 2000"
grep -q '^saved' slow.out || fail "the end is missing"

case="closed files" # no file that is opened later takes their place
timeout -k 1 20 "$KEEL" "${fit[@]}" --epochs 3 -o closed.keras --checkpoint ck --history closed.csv <&- >&- 2>&-
got=$?
((got == 1)) || fail "exit code $got, not 1"
"$KEEL" inspect closed.keras >/dev/null || fail "the model is damaged"
(($(wc -l <closed.csv) == 4)) || fail "the history: $(cat closed.csv)"
[[ ! -s ck/checkpoint.lock ]] || fail "in the lock: $(cat ck/checkpoint.lock)"
"$KEEL" "${fit[@]}" -o closed.keras 2>err.txt >&- && fail "is a success"
grep -q '^keel fit: standard output cannot be written$' err.txt || fail "$(cat err.txt)"

case="a full disk"
"$KEEL" "${fit[@]}" -o full.keras >/dev/full 2>err.txt && fail "is a success"
grep -q 'standard output cannot be written' err.txt || fail "$(cat err.txt)"

((failed == 0)) || { echo "$failed failed"; exit 1; }

#!/bin/bash
# What `keel fit` keeps, however it ends: signals, closed pipes, failures in the middle, full disks, a
# folder that is gone, two runs with one output; and that a run which was killed goes on.
set -u
cd "$KEEL_TEST_TMP" || exit 2
failed=0

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}

# code WANT GOT: the exit code of what ran last
code()
{
    [[ $1 == "$2" ]] || fail "$case: exit code $2, not $1: $(head -c 400 err.txt)"
}

# says PATTERN: what was printed on stderr, in one line
says()
{
    grep -qE -e "$1" err.txt || fail "$case: nothing like '$1' in: $(head -c 600 err.txt)"
}

# trained FILE: a model that was trained for some steps
trained()
{
    "$KEEL" inspect "$1" >inspect.txt 2>&1 || fail "$case: $1: $(cat inspect.txt)"
    grep -qE '[1-9][0-9,]* steps? done' inspect.txt || fail "$case: $1 was not trained: $(cat inspect.txt)"
}

# until_epoch: wait until the run in the background has told of an epoch
until_epoch()
{
    for _ in $(seq 200); do
        grep -q '^epoch' out.txt && return
        sleep 0.05
    done
    fail "$case: no epoch within 10 s: $(cat out.txt err.txt)"
}

# run ARGUMENT...: a long run in the background; its process is $pid
run()
{
    : >out.txt
    "$KEEL" "${fit[@]}" --epochs 2000000 "$@" >out.txt 2>err.txt &
    pid=$!
    until_epoch
}

awk 'BEGIN { srand(7); print "a,b,c,d,kind"
    for (i = 0; i < 103; i++) { a = rand(); b = rand(); print a "," b "," rand() "," rand() "," (a > b ? "more" : "less") } }' >t.csv
"$KEEL" new mlp --input 4 --classes 2 --sizes 32 --dropout 0.1 -o two.keras >/dev/null || exit 2
fit=(fit two.keras --data t.csv --label kind --batch-size 16 --devices cpu:0-1)

# ---- signals ------------------------------------------------------------------------------------
for signal in TERM HUP XCPU; do
    case="SIG$signal"
    run -o $signal.keras
    kill -$signal $pid
    wait $pid
    got=$?
    code $((128 + $(kill -l $signal))) $got
    says "the model after step [0-9]+ of epoch [0-9]+ is saved as $signal.interrupted.keras\$"
    trained $signal.interrupted.keras
    [[ ! -e $signal.keras && ! -e $signal.keras.lock ]] || fail "$case: $(ls)"
done
case="a second time"
cp TERM.interrupted.keras before.keras
run -o TERM.keras
kill -TERM $pid
wait $pid
says 'is saved as TERM.interrupted-2.keras$'
cmp -s TERM.interrupted.keras before.keras || fail "$case: what was kept before is written over"

# rows that come from a program as .npy files, four batches, and then no more
cat >rows.py <<END
import struct, sys, time
def npy(kind, shape, data):
    head = repr({"descr": kind, "fortran_order": False, "shape": shape}).ljust(117) + "\\n"
    return b"\\x93NUMPY\\x01\\0" + struct.pack("<H", len(head)) + head.encode() + data
for _ in range(4):
    sys.stdout.buffer.write(npy("<f4", (16, 4), struct.pack("64f", *[i / 64 for i in range(64)])))
    sys.stdout.buffer.write(npy("<i4", (16,), struct.pack("16i", *[i % 2 for i in range(16)])))
sys.stdout.buffer.flush()
time.sleep(600)
END
for signal in TERM HUP; do
    case="SIG$signal, while it waits for rows that never come"
    "$KEEL" fit two.keras --data "exec:python3 $PWD/rows.py" --devices cpu:0 -o rows$signal.keras >out.txt 2>err.txt &
    pid=$!
    sleep 3
    kill -$signal $pid
    wait $pid
    got=$?
    code $((128 + $(kill -l $signal))) $got
    says "there were no rows for .*the model after step [1-4] of epoch 1 is saved as rows$signal.interrupted.keras\$"
    trained rows$signal.interrupted.keras
    ! pgrep -f "$PWD/rows.py" >/dev/null || fail "$case: the program still runs"
done

case="no epoch is left"
"$KEEL" "${fit[@]}" --epochs 2 -o whole.keras >out.txt 2>err.txt || fail "$case: $(cat err.txt)"
cp whole.keras before.keras
"$KEEL" "${fit[@]}" --epochs 2 --initial-epoch 2 -o whole.keras >out.txt 2>err.txt
code 2 $?
says 'initial_epoch 2 leaves no epoch: epochs is 2, and counts those before'
cmp -s whole.keras before.keras || fail "$case: the output is written over"

case="resumed after callbacks stopped it"
stopping=("${fit[@]}" --epochs 9 --early-stopping loss,patience=1,min_delta=100 --checkpoint stopped --resume -o stopped.keras)
"$KEEL" "${stopping[@]}" >out.txt 2>err.txt || fail "$case: $(cat err.txt)"
mv stopped.keras before.keras
"$KEEL" "${stopping[@]}" >out.txt 2>err.txt || fail "$case: $(cat err.txt)"
says 'is of a training that is complete, after 2 epochs'
cmp -s <(unzip -p stopped.keras model.weights.h5) <(unzip -p before.keras model.weights.h5) || fail "$case: other weights"

case="nohup"
trap '' HUP
run -o nohup.keras
trap - HUP
kill -HUP $pid
sleep 0.3
kill -0 $pid || fail "$case: ended"
kill -INT $pid
wait $pid
code 130 $?
trained nohup.keras

case="Ctrl-C twice"
run -o twice.keras
kill -INT $pid
kill -INT $pid
wait $pid
code 130 $?
trained "$(ls -d twice.keras twice.interrupted.keras 2>/dev/null | head -n 1)"

case="a closed pipe"
"$KEEL" "${fit[@]}" --epochs 2000000 -o pipe.keras 2>err.txt | head -n 3 >/dev/null
code 141 "${PIPESTATUS[0]}"
says 'standard output was closed .SIGPIPE.; the model after .* is saved as pipe.interrupted.keras'
trained pipe.interrupted.keras

# ---- failures in the middle ---------------------------------------------------------------------
case="a loss that is not finite"
sed '50s/^[^,]*/1e38/' t.csv >huge.csv
"$KEEL" fit two.keras --data huge.csv --label kind --batch-size 16 --no-shuffle -o nan.keras --optimizer sgd \
    --learning-rate 1e10 --loss categorical_crossentropy >out.txt 2>err.txt
code 1 $?
says 'is not finite.*; the model after step [0-9]+ of epoch [0-9]+ is saved as nan.interrupted.keras$'
trained nan.interrupted.keras

case="a wrong validation row"
"$KEEL" new cnn --input 16,16,3 --classes 10 --sizes 4 -o cnn.keras >/dev/null
"$KEEL_BUILD/make_shapes" shapes 40 5 >/dev/null || fail "make_shapes"
cp -r shapes held
torn=$(ls held/*/*.jpg | tail -n 1) # its head and end are good, which is all that is read before the first step
printf '\377%.0s' $(seq 16) | dd of="$torn" bs=1 seek=185 conv=notrunc 2>/dev/null
"$KEEL" fit cnn.keras --data shapes --validation held --epochs 3 -o rows.keras >out.txt 2>err.txt
code 1 $?
says 'validation data: batch [0-9]+, row [0-9]+ of held: .*held/.*; the model after step 2 of epoch 1 is saved as rows.interrupted.keras$'
trained rows.interrupted.keras
"$KEEL" evaluate cnn.keras --data held >out.txt 2>err.txt
code 1 $?
says '^keel evaluate: batch 2, row [0-9]+ of held: .*held/'
"$KEEL" predict cnn.keras --data held -o held.npy >out.txt 2>err.txt
code 1 $?
says '^keel predict: batch 2, row [0-9]+ of held: .*held/'

case="a failure before the first step"
"$KEEL" "${fit[@]}" --validation nothing.csv -o none.keras >out.txt 2>err.txt
code 1 $?
[[ $(ls -d none* 2>/dev/null) == "" ]] || fail "$case: $(ls)"

# ---- places that are full or gone ---------------------------------------------------------------
case="the folder is gone at the end"
mkdir gone
export TMPDIR=$PWD/tmp
mkdir "$TMPDIR"
run -o gone/g.keras
rm -r gone
kill -INT $pid
wait $pid
code 1 $?
says "gone/g.keras: .*; the trained model is saved as $TMPDIR/g.interrupted.keras instead: move it"
trained "$TMPDIR/g.interrupted.keras"

case="gone before a signal"
mkdir gone
run -o gone/g.keras
rm -r gone "$TMPDIR/g.interrupted.keras"
kill -TERM $pid
wait $pid
code 143 $?
says "is saved as $TMPDIR/g.interrupted.keras"
trained "$TMPDIR/g.interrupted.keras"
unset TMPDIR

case="no room for the model"
"$KEEL" new mlp --input 4 --classes 2 --sizes 500,500 -o large.keras >/dev/null
cp large.keras kept.keras
cp large.keras o.keras
(ulimit -f 500 && "$KEEL" fit large.keras --data t.csv --label kind -o o.keras >out.txt 2>err.txt)
code 1 $?
says "o.keras': the model takes .* at least, and they cannot be written there: File too large"
grep -q '^epoch' out.txt && fail "$case: trained before it was refused"
cmp -s o.keras kept.keras || fail "$case: the old file has changed"

case="no room for the optimizer's state" # but for the weights
(ulimit -f 2000 && "$KEEL" fit large.keras --data t.csv --label kind -o o.keras >out.txt 2>err.txt)
code 1 $?
says "o.keras': the model takes .* at least, and they cannot be written there: File too large"

case="no room at the end" # for all numbers, but not for their names too
(ulimit -f 2978 && "$KEEL" fit large.keras --data t.csv --label kind -o o.keras >out.txt 2>err.txt)
code 1 $?
says 'o.keras: .*File too large; there is no room in .* either, so the trained model is lost'
cmp -s o.keras kept.keras || fail "$case: the old file has changed"
! ls | grep -E '[.]tmp$|keel-try|[.]lock$' || fail "$case: files are left: $(ls -A)"

case="no room for the history"
(ulimit -f 40 && "$KEEL" "${fit[@]}" --epochs 2500 --history h.csv -o h.keras >out.txt 2>err.txt)
code 1 $?
says 'history h.csv: File too large; training goes on'
trained h.keras

case="no room for checkpoints"
(ulimit -f 2978 && "$KEEL" fit large.keras --data t.csv --label kind -o o.keras --epochs 2 --checkpoint full >out.txt 2>err.txt)
code 1 $?
says 'a checkpoint could not be written, and those before it stay: .*File too large'
says 'the last 2 checkpoints could not be written: .*File too large'
(ulimit -f 2978 && "$KEEL" fit large.keras --data t.csv --label kind -o o.keras --epochs 6 --checkpoint full --resume >out.txt 2>err.txt)
code 1 $?
says 'the last 6 checkpoints could not be written: .*File too large'
[[ $(grep -c 'could not be written' err.txt) -le 3 ]] || fail "$case: a line for each: $(cat err.txt)"

# ---- one output, one run ------------------------------------------------------------------------
case="two runs"
run -o one.keras --history one.csv
cp err.txt first.txt
"$KEEL" "${fit[@]}" -o one.keras >/dev/null 2>err.txt
code 1 $?
says "one.keras: process $pid is training into it; wait for its end, or give another name"
before=$(wc -l <one.csv)
((before > 1)) || fail "$case: the history does not grow: $(cat one.csv)"
kill -KILL $pid
wait $pid 2>/dev/null
case="after a run that was killed"
"$KEEL" "${fit[@]}" -o one.keras >/dev/null 2>err.txt
code 0 $?
[[ ! -e one.keras.lock ]] || fail "$case: its lock is left"

# ---- checkpoints --------------------------------------------------------------------------------
case="killed and resumed"
long=("${fit[@]}" --epochs 300 --reproducible --validation-split 0.2)
"$KEEL" "${long[@]}" -o whole.keras --history whole.csv >/dev/null 2>err.txt
code 0 $?
kept=("${long[@]}" -o part.keras --history part.csv --checkpoint ck --checkpoint-every 3 --resume)
kills=0
for i in $(seq 40); do
    "$KEEL" "${kept[@]}" >out.txt 2>err.txt &
    pid=$!
    sleep 0.$(printf %03d $((5 + i * 17 % 60)))
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null && break
    kills=$((kills + 1))
done
((kills > 0)) || fail "$case: never killed"
"$KEEL" "${kept[@]}" --devices cpu:0-2 >out.txt 2>err.txt
code 0 $?
cmp whole.csv part.csv || fail "$case: another history"
for n in whole part; do "$KEEL" predict $n.keras --data t.csv --label kind -o $n.npy >/dev/null; done
cmp whole.npy part.npy || fail "$case: other predictions"
case="resumed"
"$KEEL" "${kept[@]}" >out.txt 2>err.txt
code 0 $?
says 'a training that is complete, after 300 epochs'

case="stopped and resumed"
rm -rf ck
: >out.txt # of the run before
"$KEEL" "${kept[@]}" --epochs 2000000 >out.txt 2>err.txt &
pid=$!
until_epoch
kill -TERM $pid
wait $pid
code 143 $?
: >out.txt # of the run before
"$KEEL" "${kept[@]}" --epochs 2000000 >out.txt 2>err.txt &
pid=$!
until_epoch
kill -TERM $pid
wait $pid
says 'goes on from the checkpoint after (step [0-9]+ of )?epoch [0-9]+'

case="options"
want_usage()
{
    "$KEEL" "${fit[@]}" -o x.keras "${@:2}" >out.txt 2>err.txt
    code 2 $?
    says "$1"
}
want_usage 'resume needs --checkpoint DIR' --resume
want_usage 'checkpoint-every needs --checkpoint DIR' --checkpoint-every 5
want_usage "checkpoint-every 'often': a number of steps" --checkpoint x --checkpoint-every often
want_usage 'keep 1: must be 2 or more' --checkpoint x --keep 1
want_usage 'has checkpoints of an earlier run' --checkpoint ck
"$KEEL" "${fit[@]}" --checkpoint none -o x.keras >out.txt 2>err.txt
code 0 $?
want_usage 'its run had no validation, and this one has "[0-9]+ rows' --checkpoint none --resume --validation t.csv
"$KEEL" "${fit[@]}" --checkpoint some --validation t.csv -o x.keras >out.txt 2>err.txt
code 0 $?
want_usage 'its run had validation "[0-9]+ rows.*, and this one has none; give' --checkpoint some --resume
fit=("${long[@]}")
want_usage 'its run had batch_size 16, and this one has 8' --checkpoint ck --resume --batch-size 8
want_usage 'its run had end keep, and this one has drop; give the same' --checkpoint ck --resume --end drop
want_usage 'its run had float32 exact, and this one has fma' --checkpoint ck --resume --float32 fma
want_usage 'its run had data "82 rows.*, and this one has "92 rows' --checkpoint ck --resume --validation-split 0.1

((failed == 0)) || { echo "$failed failed"; exit 1; }
echo "whatever ends a fit, what it learned is kept"

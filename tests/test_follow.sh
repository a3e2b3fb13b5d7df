#!/bin/bash
# Processes of one machine that act as one, started by each MPI that there is a plug-in and a launcher for:
# what the first one says, who stays by itself, one exit code, and signals to either of them.
set -u
cd "$KEEL_TEST_TMP" || exit 2
failed=0
export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none TMPDIR=$KEEL_TEST_TMP
DATA='synthetic(x=float32(4),y=int(3),rows=103)'

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}

launch() # N ARGUMENT...: out.txt, err.txt
{
    if [[ $mpi == openmpi ]]; then
        timeout -k 5 60 mpirun.openmpi $( (($(id -u))) || echo --allow-run-as-root) --oversubscribe -n "$@" >out.txt 2>err.txt
    else
        timeout -k 5 60 mpiexec.mpich -n "$@" >out.txt 2>err.txt
    fi
}

want() # CODE PATTERN N ARGUMENT...
{
    local code=$1 pattern=$2 got
    shift 2
    launch "$@"
    got=$?
    ((got == code)) || fail "$mpi $*: exit code $got, not $code: $(head -c 600 err.txt)"
    grep -qE -e "$pattern" out.txt err.txt || fail "$mpi $*: nothing like '$pattern' in: $(head -c 900 out.txt err.txt)"
}

process() # RANK: its number, found by what the launcher has put into its environment
{
    local p
    for p in $(pgrep -f "^$KEEL fit"); do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qE "^(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1\$" || continue
        tr '\0' '\n' <"/proc/$p/environ" | grep -qxF "KEEL_TEST_TMP=$KEEL_TEST_TMP" && echo "$p" && return
    done
}

signalled() # SIGNAL RANK N ARGUMENT...: a long run of N in the background gets it; its exit code is $got
{
    : >out.txt
    launch "$3" "$KEEL" "${fit[@]}" --epochs 2000000 --timeout 1 -o long.keras "${@:4}" &
    local running=$!
    for _ in $(seq 200); do
        grep -q '^epoch' out.txt && { (($# == 3)) || compgen -G 'ck/*.keras' >/dev/null; } && break
        sleep 0.05
    done
    kill -"$1" "$(process "$2")" || fail "$mpi: no process $2"
    wait $running
    got=$?
}

"$KEEL" new mlp --input 4 --classes 3 --sizes 8 -o m.keras >/dev/null || fail "keel new mlp"
fit=(fit m.keras --data "$DATA" --batch-size 16 --seed 7 --reproducible)
"$KEEL" "${fit[@]}" --epochs 2 -o one.keras >/dev/null || fail "alone"
"$KEEL" predict one.keras --data "$DATA" -o one.npy >/dev/null || fail "predict alone"
found=
for mpi in openmpi mpich; do
    launcher=mpirun.openmpi
    [[ $mpi == openmpi ]] || launcher=mpiexec.mpich
    [[ -e $KEEL_BUILD/libkeel_mpi_$mpi.so ]] && command -v $launcher >/dev/null || continue
    found="$found $mpi"

    want 0 ' 103 rows; 3 processes on 1 machine act as 1, with [0-9]+ device' 3 "$KEEL" "${fit[@]}" --epochs 2 -o $mpi.keras
    (($(grep -c '^saved' out.txt) == 1)) || fail "$mpi: not one process speaks"
    "$KEEL" predict $mpi.keras --data "$DATA" -o $mpi.npy >/dev/null || fail "$mpi: predict"
    cmp -s one.npy $mpi.npy || fail "$mpi: one process and three learned other weights"
    want 0 '^--compress bf16 changes nothing: the processes act as one, so no gradients travel' 2 \
        "$KEEL" fit m.keras --data "$DATA" --batch-size 16 --compress bf16 -o compressed.keras
    want 0 ' 103 rows; 3 processes on 1 machine, the first with' 3 "$KEEL" "${fit[@]}" --apart --shards 64 -o apart.keras
    want 0 ' 103 rows; 2 processes on 1 machine, the first with 1 device' 2 "$KEEL" "${fit[@]}" --devices cpu:0 -o apart.keras
    grep -q '^these processes do not act as one, ' out.txt || fail "$mpi: it is not said that processes are slower"
    want 0 ' 103 rows; 3 processes on 1 machine act as 2, the first with' 1 "$KEEL" "${fit[@]}" -o apart.keras \
        : -n 2 "$KEEL" "${fit[@]}" -o other.keras
    want 2 'seed' 1 "$KEEL" "${fit[@]}" -o apart.keras : -n 1 "$KEEL" "${fit[@]}" --seed 8 -o apart.keras
    want 1 'is not finite' 2 "$KEEL" fit m.keras --data "$DATA" --optimizer sgd --learning-rate 1e38 -o x.keras
    want 0 '103 in' 2 "$KEEL" evaluate one.keras --data "$DATA"

    signalled TERM 1 2
    ((got == 143)) || fail "$mpi: exit code $got after SIGTERM to the second process: $(head -c 600 err.txt)"
    grep -q 'stopped by SIGTERM; the model after step .* is saved' err.txt || fail "$mpi: $(head -c 600 err.txt)"
    signalled STOP 0 2
    ((got != 0)) || fail "$mpi: exit code 0 although the first process was stopped"
    grep -q 'rank 1 (.*): keel fit: process 0 (.*) has been stopped (SIGSTOP) for 1 s' err.txt ||
        fail "$mpi: $(head -c 600 err.txt)"

    # the only process that knew the model: what is left is named, and goes on
    for kept in '' '--checkpoint ck --checkpoint-every 5'; do
        signalled KILL 0 3 $kept
        ((got != 0)) || fail "$mpi: exit code 0 although the first process was killed"
        n=$(grep -c 'rank [12] (.*): keel fit: process 0 (.*), which ran the devices of this one, was killed; ' err.txt)
        left=$(sed -nE 's/.*the newest checkpoint is left, (.*): the same command with --resume goes on from it$/\1/p' err.txt)
        # mpiexec of MPICH may be faster than they are
        [[ $mpi == mpich && $n == 0 ]] && continue
        ((n == 1)) || fail "$mpi: killed: $n processes say so: $(head -c 600 err.txt)"
        [[ -z $kept || -s $left ]] || fail "$mpi: killed: the newest checkpoint is not named: $(head -c 600 err.txt)"
        [[ $kept ]] || grep -q 'nothing is left of what was learned; with --checkpoint DIR,' err.txt || fail "$mpi: killed: $(head -c 600 err.txt)"
    done
    signalled TERM 0 3 $kept --resume
    grep -q 'goes on from the checkpoint after' err.txt || fail "$mpi: killed: does not go on: $(head -c 600 err.txt)"
    rm -rf ./*.interrupted*.keras ck
done
[[ -n $found ]] || { echo "no launcher of an MPI was found"; exit 77; }
((failed == 0)) || { echo "$failed failed"; exit 1; }
echo "act as one:$found"

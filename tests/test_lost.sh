#!/bin/bash
# Processes of keel fit that are lost or asked to end, and processors that differ, under each MPI that there
# is a plug-in and a launcher for, both at once: what is saved, by whom, and that a fit which goes on has the bits of one
# that never stopped.
set -u
cd "$KEEL_TEST_TMP" || exit 2
failed=0
export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none TMPDIR=$KEEL_TEST_TMP
DATA='synthetic(x=float32(4),y=int(3),rows=6001)'
SAVED='the model after step [0-9]+ of epoch [0-9]+ is saved as o.interrupted.keras'

fail()
{
    echo "error: $mpi, $case: $*"
    head -c 1200 err.txt
    failed=$((failed + 1))
}

launcher() # the words before -n
{
    if [[ $mpi == openmpi ]]; then
        echo "mpirun.openmpi --oversubscribe $( (($(id -u))) || echo --allow-run-as-root)"
    else
        echo mpiexec.mpich
    fi
}

fit=(fit ../m.keras --data "$DATA" --batch-size 16 --seed 7 --reproducible --devices cpu:0 --checkpoint ck -o o.keras)

begin() # CASE ARGUMENT...: a fit of 3 processes in a folder of its own, until its second epoch
{
    case=$1
    shift
    mkdir "$mpi-$case" && cd "$mpi-$case" || exit 2
    timeout -k 5 60 $(launcher) -n 3 "$KEEL" "${fit[@]}" --timeout 1 --checkpoint-every 1h --history h.csv "$@" >out.txt 2>err.txt &
    job=$!
    local end=$((SECONDS + 20))
    until (($(cat h.csv 2>/dev/null | wc -l) > 1)) || ((SECONDS > end)); do sleep 0.02; done
}

process() # RANK: its number
{
    local p
    for p in $(pgrep -f "^$KEEL fit ../m.keras"); do
        [[ $(readlink "/proc/$p/cwd") == "$PWD" ]] || continue
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qE "^(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1$" && echo "$p"
    done | head -n 1
}

said() { grep -aqE -e "$1" err.txt || fail "nothing like '$1'"; }
saved() # the model beside the output, once, whole; and a checkpoint
{
    [[ -e o.interrupted.keras && ! -e o.interrupted-2.keras ]] || fail "not one saved model: $(ls)"
    "$KEEL" inspect o.interrupted.keras >/dev/null 2>&1 || fail "the saved model cannot be read"
    (($(grep -ac 'is saved as' err.txt) == 1)) || fail "not one process says that it has saved"
    ls ck/*.keras >/dev/null 2>&1 || fail "there is no checkpoint"
    ! ls -A . ck | grep -E '\.tmp$|interrupted.keras.lock|checkpoint-.*lock' || fail "parts are left"
}
weights() { "$KEEL" predict "$1" --data "$DATA" --reproducible -o "$1.npy" >/dev/null 2>&1 && sha256sum <"$1.npy"; }
goes_on() # by two processes, to the bits of one that never stopped
{
    timeout -k 5 60 $(launcher) -n 2 "$KEEL" "${fit[@]}" --resume --epochs 10 >out.txt 2>err.txt || fail "does not go on"
    said 'goes on from the checkpoint after step [0-9]+ of epoch'
    [[ $(weights o.keras) == "$expected" ]] || fail "other weights than without a stop"
}

lose() # RANK SIGNAL PATTERN: rank 1 has the first turn to save, but on a busy machine another may be faster
{
    local victim since=$SECONDS
    begin "rank-$1-SIG$2" --epochs 10
    victim=$(process $1)
    kill -$2 "$victim"
    wait $job && fail "exit code 0"
    kill -9 "$victim" 2>/dev/null
    said "$3"
    saved
    goes_on
    ((SECONDS - since < 40)) || fail "$((SECONDS - since)) s"
    cd ..
}

"$KEEL" new mlp --input 4 --classes 3 --sizes 8 -o m.keras >/dev/null || exit 2
mkdir one && cd one
"$KEEL" fit ../m.keras --data "$DATA" --batch-size 16 --seed 7 --reproducible --epochs 10 -o o.keras >/dev/null || exit 2
expected=$(weights o.keras)
cd ..

# Open MPI sends SIGTERM to the others when one is killed, and kills them a second later
with_openmpi()
{
    mpi=openmpi
    lose 0 KILL "^rank [12] .*process 0 \(.*(does not|has not) answer.*; $SAVED"
    lose 0 STOP "^rank [12] .*process 0 \(.*has not answered for [0-9]+ s.*; $SAVED"
    ((failed == 0))
}

# MPICH kills all when one is killed
with_mpich()
{
    mpi=mpich
    # in the middle of an epoch: the rest of it is trained later
    begin sigterm --epochs 10
    kill -TERM "$(process 1)"
    wait $job && fail "exit code 0"
    said "stopped by SIGTERM; $SAVED"
    saved
    goes_on
    cd ..
    lose 0 STOP "^rank [12] .*process 0 \(.*has not answered for [0-9]+ s.*; $SAVED"
    lose 2 STOP "^keel fit: .*process 2 \(.*has not answered for [0-9]+ s.*; $SAVED"
    [[ $("$KEEL" --version) != *avx512* ]] || unlike_processors
    ((failed == 0))
}

# the first process has only avx2
unlike_processors()
{
    case=instructions
    mkdir $mpi-$case && cd $mpi-$case || exit 2
    local words=(fit ../m.keras --data "$DATA" --batch-size 16 --seed 7 --reproducible --devices cpu:0 --epochs 1 -o)
    $(launcher) -n 1 env KEEL_CPU=avx2 "$KEEL" "${words[@]}" o.keras : -n 1 "$KEEL" "${words[@]}" o.keras >out.txt 2>err.txt &&
        fail "unlike processors are not refused"
    said 'process 1 \(.*\) computes with avx512.*, process 0 with avx2, .*; --instructions common uses what all'
    $(launcher) -n 1 env KEEL_CPU=avx2 "$KEEL" "${words[@]}" o.keras --instructions common : \
        -n 1 "$KEEL" "${words[@]}" o.keras --instructions common >out.txt 2>err.txt || fail "--instructions common: exit code $?"
    KEEL_CPU=avx2 "$KEEL" "${words[@]}" least.keras >/dev/null 2>&1
    [[ $(weights o.keras) == $(weights least.keras) ]] || fail "not the weights of the lesser processor"
    "$KEEL" "${words[@]}" named.keras --instructions avx2 >/dev/null 2>&1
    [[ $(weights named.keras) == $(weights least.keras) ]] || fail "--instructions avx2: not those of KEEL_CPU=avx2"
    cd ..
}

found=
for mpi in openmpi mpich; do
    [[ -e $KEEL_BUILD/libkeel_mpi_$mpi.so ]] && command -v $(launcher | cut -d' ' -f1) >/dev/null || continue
    with_$mpi >$mpi.txt 2>&1 &
    found="$found $!:$mpi"
done
[[ -n $found ]] || { echo "no launcher of an MPI was found"; exit 77; }
code=0
for pair in $found; do
    wait "${pair%:*}" || { code=1; cat "${pair#*:}.txt"; }
done
((code == 0)) && echo "lost and found:$found"
exit $code

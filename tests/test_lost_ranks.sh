#!/bin/bash
# Processes that fail, fall silent, stop or are killed at each exchange of a step, under each MPI: all
# others end, name the one that is lost, and what is saved are the weights of a whole step. Also a stopped
# process that goes on, whose waiting others need no core, and Ctrl-C to mpirun. tests/mpi/faulty.c does
# the harm. KEEL_LOST_RANKS=all tries every kind at every exchange; else the kinds take turns.
set -u
cd "$KEEL_TEST_TMP" || exit 2
export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_orte_tmpdir_base=$KEEL_TEST_TMP
DATA='synthetic(x=float32(4),y=int(3),rows=16)' # one step an epoch
EPOCHS=3 FIRST=46 LAST=63 ALL=64 AT_ONCE=12     # exchanges: the first and last of epochs 2 and 3, and how many there are
runs=0

fail() # also from jobs
{
    echo "error: $*"
    echo >>"$KEEL_TEST_TMP/failures"
}

# MPI N COMMAND...: becomes the launcher, so that its id is that of the job. Jobs of a script ignore Ctrl-C
# unless they are told not to.
limit=()
start()
{
    local mpi=$1 n=$2
    shift 2
    if [[ $mpi == openmpi ]]; then
        exec "${limit[@]}" env --default-signal=INT mpirun.openmpi $( (($(id -u))) || echo --allow-run-as-root) --oversubscribe -n "$n" "$@"
    else
        exec "${limit[@]}" env --default-signal=INT mpiexec.mpich -n "$n" "$@"
    fi
}

fit=(fit ../m.keras --data "$DATA" --batch-size 16 --epochs $EPOCHS --seed 7 --reproducible --devices cpu:0)

# MPI FAULT: one fit of three processes, or of N if the fault ends with "of N", in a folder of its own, with its
# exit code in `code`. "in parts": each has a part of the optimizer's state.
run()
{
    local folder=$1.${2// /.} n=3
    local more=()
    [[ $2 != *" of "* ]] || n=${2##* }
    [[ $2 != *" in parts" ]] || more=(--shard-optimizer)
    mkdir "$folder" && cd "$folder" || exit 2
    mkdir tmp
    export TMPDIR=$PWD/tmp OMPI_MCA_orte_tmpdir_base=$PWD/tmp
    export KEEL_FAULTY_PLUGIN=$KEEL_BUILD/libkeel_mpi_$1.so KEEL_FAULTY_COUNT=$PWD/count LD_LIBRARY_PATH=../bare
    [[ ! $2 ]] || export KEEL_FAULTY=$2
    (limit=(timeout -k 5 30) && start "$1" $n ../bare/keel "${fit[@]}" -o x.keras --checkpoint ck --checkpoint-every 1 \
        --timeout 1 "${more[@]}") >out.txt 2>err.txt
    echo $? >code
    rm -r tmp
}

# The weights of a file are those after some number of steps.
is_whole() # FILE WHAT
{
    local e id=$BASHPID # in a redirection it is that of the command
    "$KEEL" predict "$1" --data "$DATA" --devices cpu:0 --reproducible -o got.$id.npy >/dev/null 2>predict.$id ||
        { fail "$2: $1 cannot be read: $(head -c 300 predict.$id)"; return; }
    for ((e = 0; e <= EPOCHS; e++)); do cmp -s got.$id.npy "after$e.npy" && return; done
    fail "$2: $1 has the weights of no step"
}

looks() # MPI FAULT: at what a run has left
{
    local folder=$1.${2// /.} what="$1, $2" code file rank=${2%% *} kind named
    read -r _ kind _ <<<"$2"
    runs=$((runs + 1))
    code=$(cat "$folder/code" 2>/dev/null || echo none)
    [[ $code != 0 && $code != 124 && $code != none ]] || fail "$what: exit code $code: $(head -c 600 "$folder/err.txt")"
    grep -qa 'keel: \|Sanitizer\|Segmentation\|corrupted\|free()\|malloc' "$folder/err.txt" && fail "$what: $(head -c 900 "$folder/err.txt")"
    # a launcher that sees a process die may end the others before they can speak
    if [[ $kind != kill && $kind != after && $rank != 0 ]]; then
        # A process that cannot hear the others names one of them. One that cannot start an exchange says so
        # and ends, and MPICH's launcher then ends the others, maybe before they speak.
        named="process $rank ("
        [[ $kind == start || $kind == test ]] && named='process [0-9] ('
        [[ $kind == start && $1 == mpich ]] && named="$named\|the other processes cannot be reached"
        grep -q "$named" "$folder/err.txt" || fail "$what: process $rank is not named: $(head -c 900 "$folder/err.txt")"
        [[ -s $folder/x.keras || -s $folder/x.interrupted.keras ]] || fail "$what: nothing is saved: $(head -c 600 "$folder/err.txt")"
        # who saves has all of the state if it was gathered after that step, for a checkpoint or at the end
        file=$folder/x.interrupted.keras
        [[ -e $file ]] || file=$folder/x.keras
        [[ $2 != *" in parts" ]] || grep -q "without the optimizer's state, .* --resume goes on from the last checkpoint" "$folder/err.txt" ||
            "$KEEL" inspect "$file" | grep -q ' [1-3] steps* done' ||
            fail "$what: it is not said that the state is lost: $(head -c 900 "$folder/err.txt")"
    fi
    for file in "$folder"/*.keras "$folder"/ck/*.keras; do
        [[ -e $file ]] && is_whole "$file" "$what"
    done
}

goes_on() # MPI FAULT: from the newest checkpoint, in one process, to the same bits
{
    local folder=$1.${2// /.}
    (cd "$folder" && "$KEEL" "${fit[@]}" -o resumed.keras --checkpoint ck --resume >out.txt 2>err.txt) ||
        { fail "$1, $2: does not go on: $(head -c 300 "$folder/err.txt")"; return; }
    "$KEEL" predict "$folder/resumed.keras" --data "$DATA" --devices cpu:0 --reproducible -o got.$BASHPID.npy >/dev/null
    cmp -s got.$BASHPID.npy after$EPOCHS.npy || fail "$1, $2: goes on to other weights"
}

# ---- what whole steps are -----------------------------------------------------------------------
"$KEEL" new mlp --input 4 --classes 3 --sizes 8 -o m.keras >/dev/null || fail "keel new mlp"
mkdir bare one
cp -L "$KEEL" "$KEEL_BUILD"/libkeel.so.0 bare
"$KEEL" predict m.keras --data "$DATA" --devices cpu:0 --reproducible -o after0.npy >/dev/null || fail "predict"
for ((e = 1; e <= EPOCHS; e++)); do
    (cd one && "$KEEL" "${fit[@]}" --epochs "$e" -o "$e.keras" >/dev/null) || fail "$e epochs"
    "$KEEL" predict "one/$e.keras" --data "$DATA" --devices cpu:0 --reproducible -o "after$e.npy" >/dev/null || fail "predict"
done
[[ ! -e failures ]] || exit 1

# ---- who waits ----------------------------------------------------------------------------------
ticks() # PID: of processor time so far
{
    local line
    line=$(cat "/proc/$1/stat") && set -- ${line##*) } && echo $((${12} + ${13}))
}

# Process 1 is stopped for two seconds, which is less than --timeout, and then goes on.
waits()
{
    local mpi=$1 folder=$1.waits launcher other i before used first second
    mkdir "$folder" && cd "$folder" || exit 2
    mkdir tmp
    (
        export TMPDIR=$PWD/tmp OMPI_MCA_orte_tmpdir_base=$PWD/tmp LD_LIBRARY_PATH=../bare
        export KEEL_FAULTY_PLUGIN=$KEEL_BUILD/libkeel_mpi_$mpi.so KEEL_FAULTY="1 stop 50"
        start $mpi 2 bash -c 'echo $$ >pid.${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-x}}; exec "$@"' keel \
            ../bare/keel "${fit[@]}" -o x.keras --timeout 20
    ) >out.txt 2>err.txt &
    launcher=$!
    for ((i = 0; i < 100; i++)); do
        other=$(cat pid.1 2>/dev/null) && [[ $(cat "/proc/$other/stat" 2>/dev/null) == *") T "* ]] && break
        sleep 0.1
    done
    sleep 0.1
    first=$(cat pid.0) second=$(date +%s%N)
    before=$(ticks "$first") || fail "$mpi: the waiting process is gone: $(head -c 300 err.txt)"
    sleep 2
    used=$((($(ticks "$first") - before) * 1000 / $(getconf CLK_TCK)))
    second=$((($(date +%s%N) - second) / 1000000))
    kill -CONT "$other"
    wait $launcher || fail "$mpi: a process that was stopped for a while: exit code $?: $(head -c 600 err.txt)"
    ((used * 10 <= second)) || fail "$mpi: waiting for $second ms took $used ms of a core"
    cd ..
    is_whole "$folder/x.keras" "$mpi, stopped for a while"
    cmp -s got.$BASHPID.npy after$EPOCHS.npy || fail "$mpi: stopped for a while, it learns other weights"
    echo "$mpi: waiting for $second ms took $used ms of a core"
}

# ---- Ctrl-C to mpirun ---------------------------------------------------------------------------
interrupted()
{
    local mpi=$1 folder=$1.interrupted launcher i saved epoch
    mkdir "$folder" && cd "$folder" || exit 2
    mkdir tmp
    (
        export TMPDIR=$PWD/tmp OMPI_MCA_orte_tmpdir_base=$PWD/tmp LD_LIBRARY_PATH=../bare
        export KEEL_FAULTY_PLUGIN=$KEEL_BUILD/libkeel_mpi_$mpi.so KEEL_FAULTY="1 slow 5" # 20 lines a second
        start $mpi 2 ../bare/keel "${fit[@]}" --epochs 10000 -o x.keras --checkpoint ck --checkpoint-every 1 --timeout 5
    ) >out.txt 2>err.txt &
    launcher=$!
    for ((i = 0; i < 100; i++)); do
        compgen -G 'ck/*.keras' >/dev/null && break
        sleep 0.1
    done
    kill -INT $launcher
    for ((i = 0; i < 150; i++)); do
        kill -0 $launcher 2>/dev/null || break
        sleep 0.1
    done
    ((i < 150)) || { fail "$mpi: Ctrl-C does not end mpirun within 15 s"; kill -KILL $launcher; }
    # MPICH's sometimes ends with 0 although each process ended with 130
    wait $launcher && [[ $mpi == openmpi ]] && fail "$mpi: Ctrl-C is a success"
    cd ..
    saved=$(ls "$folder"/x.keras "$folder"/x.interrupted.keras 2>/dev/null)
    [[ $saved ]] || { fail "$mpi: Ctrl-C leaves nothing: $(tail -n 3 "$folder/out.txt") $(head -c 600 "$folder/err.txt")"; return; }
    epoch=$(grep -c '^epoch' "$folder/out.txt")
    for ((i = epoch; i <= epoch + 1; i++)); do # the last line may not have come
        "$KEEL" "${fit[@]//../.}" --epochs $i -o "$folder/ref.keras" >/dev/null
        "$KEEL" predict "$folder/ref.keras" --data "$DATA" --devices cpu:0 --reproducible -o "after$i.npy" >/dev/null
    done
    EPOCHS=$((epoch + 1)) is_whole "$saved" "$mpi, after Ctrl-C"
}

# The same while a process prints so fast that the launcher, which does not read any more, holds it up.
printing()
{
    local mpi=$1 folder=$1.printing launcher i
    mkdir "$folder" && cd "$folder" || exit 2
    mkdir tmp
    (
        export TMPDIR=$PWD/tmp OMPI_MCA_orte_tmpdir_base=$PWD/tmp
        unset LD_LIBRARY_PATH # of the plug-in that does harm
        start $mpi 2 "$KEEL" "${fit[@]}" --devices cpu --epochs 2000000 -o x.keras
    ) >out.txt 2>err.txt &
    launcher=$!
    for ((i = 0; i < 100; i++)); do
        (($(cat out.txt 2>/dev/null | grep -c '^epoch') > 1000)) && break
        sleep 0.1
    done
    kill -INT $launcher
    for ((i = 0; i < 100; i++)); do
        kill -0 $launcher 2>/dev/null || break
        sleep 0.1
    done
    ((i < 100)) || { fail "$mpi: Ctrl-C does not end a run that prints fast within 10 s"; kill -KILL $launcher; }
    wait $launcher
    [[ -s x.keras || -s x.interrupted.keras ]] || fail "$mpi: Ctrl-C to a run that prints fast leaves nothing: $(head -c 600 err.txt)"
}

# ---- who is lost --------------------------------------------------------------------------------
kinds=(start test silent kill after stop)
found= faults=()
for mpi in openmpi mpich; do
    launcher=mpirun.openmpi
    [[ $mpi == openmpi ]] || launcher=mpiexec.mpich
    [[ -e $KEEL_BUILD/libkeel_mpi_$mpi.so ]] && command -v $launcher >/dev/null || continue
    found="$found $mpi"
    cp "$KEEL_BUILD/tests/libkeel_mpi_faulty.so" "bare/libkeel_mpi_$mpi.so"
    run $mpi "" # no fault
    cd ..
    read -r count <$mpi./count
    [[ $count == "$ALL" && $(cat $mpi./code) == 0 ]] || fail "$mpi: $count exchanges, not $ALL: $(head -c 600 $mpi./err.txt)"
    for ((k = FIRST; k <= LAST; k++)); do
        if [[ ${KEEL_LOST_RANKS:-} == all ]]; then
            for kind in "${kinds[@]}"; do faults+=("$mpi 1 $kind $k" "$mpi 0 $kind $k"); done
        elif ((k % 2 == ${#found} % 2)); then # Open MPI takes the even ones
            faults+=("$mpi 1 ${kinds[k / 2 % 6]} $k")
        fi
    done
    # ten merge their records in rounds: who is lost is missed by some, for which the others wait
    faults+=("$mpi 4 silent 51 of 10" "$mpi 2 stop 52 of 10")
    [[ ${KEEL_LOST_RANKS:-} == all ]] || faults+=("$mpi 0 kill 50" "$mpi 0 silent 51")
    faults+=("$mpi 2 test 1" "$mpi 1 silent 3")
    # exchanges of an epoch of one step: votes, weights, what process 0 gathers
    parts=($(((${#found} % 2) + 59)) 61 63 65 67 69)
    [[ ${KEEL_LOST_RANKS:-} == all ]] && parts=({55..75})
    for i in "${!parts[@]}"; do
        faults+=("$mpi 1 ${kinds[i % 3]} ${parts[i]} in parts")
    done
    faults+=("$mpi 2 silent 66 in parts" "$mpi 0 kill 62 in parts")
done
[[ $found ]] || { echo "no launcher of an MPI was found"; exit 77; }
for mpi in $found; do
    runs=$((runs + 3))
    waits $mpi &
    interrupted $mpi &
    printing $mpi &
done
for fault in "${faults[@]}"; do
    while (($(jobs -rp | wc -l) >= AT_ONCE)); do wait -n; done
    run ${fault%% *} "${fault#* }" &
done
wait
for fault in "${faults[@]}"; do
    case $fault in
    *" 2 test 1" | *" 1 silent 3") # before the first step: all end, and nothing is saved
        runs=$((runs + 1))
        folder=${fault// /.}
        [[ $(cat "$folder/code") != [0n]* && $(cat "$folder/code") != 124 ]] || fail "$fault: exit code $(cat "$folder/code")"
        [[ ! -e $folder/x.keras ]] || fail "$fault: saves a model"
        ;;
    *) looks ${fault%% *} "${fault#* }" ;;
    esac
    [[ $fault != *" 0 kill 48" && $fault != *" in parts" ]] || goes_on ${fault%% *} "${fault#* }"
done

[[ ! -e failures ]] || { echo "$(wc -l <failures) failed"; exit 1; }
echo "$runs runs:$found"

#!/bin/bash
# Processes connected by each MPI that there is a plug-in for: what tests/mpi/exchange.c checks, with 2,
# 3, 4 and 8 processes, which share the cores.
set -u
program=$KEEL_BUILD/tests/mpi_exchange
failed=0 runs=0
export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none
export TMPDIR=$KEEL_TEST_TMP # Open MPI's own files

launch() # MPI N ARGUMENT...: run the program
{
    local mpi=$1 n=$2 as_root=()
    shift 2
    if [[ $mpi == openmpi ]]; then
        [[ $(id -u) == 0 ]] && as_root=(--allow-run-as-root)
        timeout -k 5 60 mpirun.openmpi "${as_root[@]}" --oversubscribe -n "$n" "$program" "$KEEL_BUILD/libkeel_mpi_$mpi.so" "$@"
    else
        timeout -k 5 60 mpiexec.mpich -n "$n" "$program" "$KEEL_BUILD/libkeel_mpi_$mpi.so" "$@"
    fi
}

fail()
{
    echo "error: $*"
    head -n 20 "$KEEL_TEST_TMP/log"
    failed=$((failed + 1))
}

holds() # MPI N CASE: every process says that it holds
{
    runs=$((runs + 1))
    launch "$@" >"$KEEL_TEST_TMP/log" 2>&1 || fail "$*: exit code $?"
}

[[ -x $program ]] || { echo "no MPI was there when Keel was built"; exit 77; }
found=
for mpi in openmpi mpich; do
    launcher=mpirun.openmpi
    [[ $mpi == openmpi ]] || launcher=mpiexec.mpich
    [[ -e $KEEL_BUILD/libkeel_mpi_$mpi.so ]] || continue
    command -v $launcher >/dev/null || { echo "there is no $launcher"; continue; }
    found="$found $mpi"
    for n in 2 3 4 8; do holds $mpi $n exchanges_in_any_order; done
    holds $mpi 3 a_message_of_another_size_is_an_error
    holds $mpi 3 memory_ends
    # the launcher calls this a failure, as it should
    runs=$((runs + 1))
    launch $mpi 3 the_silent_process_is_named >"$KEEL_TEST_TMP/log" 2>&1 && fail "$mpi: the silent process is a success"
    for p in 0 1; do
        grep -q "^process $p awaits 2$" "$KEEL_TEST_TMP/log" || fail "$mpi: process $p did not name the silent one"
    done
    if grep -q "does not hold" "$KEEL_TEST_TMP/log"; then fail "$mpi: the silent process"; fi
done
[[ -n $found ]] || { echo "no launcher of an MPI was found"; exit 77; }
((failed == 0)) || { echo "$failed failed"; exit 1; }
echo "$runs runs:$found"

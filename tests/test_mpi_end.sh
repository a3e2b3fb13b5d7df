#!/bin/bash
# MPI_Finalize in programs that use keel/mpi.h (tests/mpi/ending.c), of each MPI: it waits for a process that
# comes late, gives up one that is lost or hangs in it, and the program goes on and has its own exit code.
set -u
cd "$KEEL_TEST_TMP" || exit 2
failed=0 runs=0
export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none TMPDIR=$KEEL_TEST_TMP

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}

# The code is that of process 0 itself: a launcher that ends the others may end with the code of one of those.
run() # MPI CASE
{
    local as_root=() program='"$0" "$1"; code=$?; (( ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} )) || echo $code >"$2"; exit $code'
    if [[ $1 == openmpi ]]; then
        [[ $(id -u) == 0 ]] && as_root=(--allow-run-as-root)
        set -- "$@" mpirun.openmpi "${as_root[@]}" --oversubscribe
    else
        set -- "$@" mpiexec.mpich
    fi
    timeout -k 5 30 "${@:3}" -n 2 bash -c "$program" "$KEEL_BUILD/tests/mpi_ending_$1" "$2" "$1.$2.code" >"$1.$2.out" 2>"$1.$2.err"
    [[ -e $1.$2.code ]] || echo none >"$1.$2.code"
}

cases=(plain late stuck lost keel-plain keel-late keel-stuck)
found=
for mpi in openmpi mpich; do
    launcher=mpirun.openmpi
    [[ $mpi == openmpi ]] || launcher=mpiexec.mpich
    [[ -x $KEEL_BUILD/tests/mpi_ending_$mpi ]] && command -v $launcher >/dev/null || continue
    found="$found $mpi"
    for case in "${cases[@]}"; do run $mpi "$case" & done
done
wait
[[ -n $found ]] || { echo "no MPI was there when Keel was built, or no launcher"; exit 77; }
for mpi in $found; do
    for case in "${cases[@]}"; do
        runs=$((runs + 1))
        code=$(cat $mpi."$case".code)
        [[ $code == 7 ]] || fail "$mpi, $case: exit code $code, not 7: $(head -c 600 $mpi."$case".err)"
        least=0 most=4 with=success
        case $case in
        *late) least=6 most=12 ;;
        *stuck) least=5 most=7 ;;
        lost) least=5 most=7 with=failure ;;
        esac
        seconds=$(sed -nE "s/^came back with $with after ([0-9]+)\..*/\1/p" $mpi."$case".out)
        [[ $seconds ]] && ((seconds >= least && seconds <= most)) ||
            fail "$mpi, $case: not '$with' after $least to $most s: $(cat $mpi."$case".out; head -c 600 $mpi."$case".err)"
        [[ $case != *late ]] || grep -q '^an exit function is called' $mpi."$case".out || fail "$mpi, $case: no exit function"
    done
done
((failed == 0)) || { echo "$failed failed"; exit 1; }
echo "$runs runs:$found"

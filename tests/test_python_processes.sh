#!/bin/bash
# The package for Python in several processes, by each MPI that there is a plug-in and a launcher for: the
# bits of one process in all of them, and what each is told where one fails, is gone, or differs.
# tests/interop/python_processes.py does the same with Keras.
set -u
for python in python3 /usr/bin/python3; do
    "$python" -c 'import numpy' 2>/dev/null && break
    python=
done
[ "$python" ] || { echo "SKIPPED: no python3 with NumPy"; exit 77; }
here=$PWD failed=0
"$KEEL" new mlp --input 6 --classes 3 --sizes 8 -o "$KEEL_TEST_TMP/m.keras" >/dev/null || exit 1
cd "$KEEL_TEST_TMP" || exit 2
export KEEL_LIBRARY=$KEEL_BUILD/libkeel.so.0 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here/../python
export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none TMPDIR=$KEEL_TEST_TMP

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}

start() # MPI N WORK: out.txt, err.txt; returns the exit code
{
    local root=--allow-run-as-root
    (($(id -u))) && root=
    case $1 in
        alone) timeout -k 5 60 "$python" "$here/python_together.py" "$3" . ;;
        openmpi) timeout -k 5 60 mpirun.openmpi $root --oversubscribe -n "$2" "$python" "$here/python_together.py" "$3" . ;;
        mpich) timeout -k 5 60 mpiexec.mpich -n "$2" "$python" "$here/python_together.py" "$3" . ;;
    esac >out.txt 2>err.txt
}

same() # MPI N WORK PATTERN: all processes have the bits of one, and print what is like this
{
    start alone 1 "$3" || fail "$3 alone: $(tail -n 3 err.txt)"
    local bits
    bits=$(cut -d ' ' -f 4 out.txt)
    start "$1" "$2" "$3" || fail "$1 $2 $3: $(tail -n 5 err.txt)"
    (($(grep -cE "^[0-9] of [0-9]: $bits" out.txt) == $2)) || fail "$1 $2 $3: not the bits of one, $bits: $(cat out.txt err.txt)"
    (($(grep -cE "$4" out.txt) > 0)) || fail "$1 $2 $3: nothing like $4: $(cat out.txt)"
}

ends() # MPI N WORK PATTERN...: a failure, of which these lines are printed
{
    local mpi=$1 n=$2 work=$3 pattern
    shift 3
    start "$mpi" "$n" "$work" && fail "$mpi $work: no failure: $(cat out.txt)"
    for pattern in "$@"; do
        grep -qE "$pattern" out.txt err.txt || fail "$mpi $work: nothing like '$pattern' in: $(cat out.txt err.txt)"
    done
}

found=
for mpi in openmpi mpich; do
    launcher=mpirun.openmpi
    [[ $mpi == openmpi ]] || launcher=mpiexec.mpich
    [[ -e $KEEL_BUILD/libkeel_mpi_$mpi.so ]] && command -v $launcher >/dev/null || continue
    found="$found $mpi"
    same $mpi 3 plain '^2 of 3: '
    grep -q '3 processes on .* may use the same cores' err.txt || fail "$mpi: no word of cores that several have: $(cat err.txt)"
    ends $mpi 2 short 'told: process 1 .*: ArgumentError: arrays: .* has 103 rows but .* has 50'
    ends $mpi 2 leaves
    [[ $found == " $mpi" ]] || continue # the rest does not depend on the MPI
    same $mpi 3 stream '^2 of 3: [0-9a-f]+ 1$' # process 0 has read all but the first batch
    same $mpi 2 alone '^1 of 2: '
    start $mpi 2 seeds || fail "$mpi seeds: $(tail -n 3 err.txt)"
    (($(cut -d ' ' -f 4 out.txt | sort -u | wc -l) == 1)) || fail "$mpi: seeds that each process draws: $(cat out.txt)"
    ends $mpi 2 fails 'keel._library.Error: process 1 \(.*\): the callback At, in on_epoch_end: RuntimeError: no luck'
    ends $mpi 2 sets 'callbacks of process 1 .* have set other weights or another learning rate'
    ends $mpi 2 one_seed 'process 1 .*: its seed is 7, that of process 0 is '
    ends $mpi 2 early 'ValueError: too early'
    ends $mpi 2 other 'process 1 .*: its data is "103 rows of'
done
[ "$found" ] || { echo "SKIPPED: no MPI with its launcher"; exit 77; }

# what is said of launchers that connect nobody
SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=0 start alone 1 plain &&
    fail "srun without an MPI: no failure"
grep -q 'ArgumentError: srun started 3 processes without connecting them.*; with processes=1 each' err.txt || fail "srun: $(cat err.txt)"
TF_CONFIG='{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker"}}' start alone 1 plain &&
    fail "TF_CONFIG: no failure"
grep -q 'TF_CONFIG names 2 workers.*: mpirun -n 2 --host a,b python python_together.py' err.txt || fail "TF_CONFIG: $(cat err.txt)"
RANK=1 WORLD_SIZE=4 MASTER_ADDR=a start alone 1 plain && fail "torchrun: no failure"
grep -q 'torchrun started 4 processes, which Keel does not connect: type mpirun -n 4 python python_together.py' err.txt ||
    fail "torchrun: $(cat err.txt)"
RANK=0 WORLD_SIZE=1 MASTER_ADDR=a start alone 1 plain || fail "torchrun of one process: $(cat err.txt)"
((failed == 0)) || { echo "$failed failed"; exit 1; }

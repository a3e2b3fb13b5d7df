#!/bin/bash
# keel fit, evaluate and predict in several processes, as people type it: the same bits as in one process,
# one voice, one exit code, and what is said where processes cannot find each other. Started by each MPI
# that there is a plug-in and a launcher for.
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

start() # MPI N KEEL-ARGUMENT... [: N KEEL-ARGUMENT...]: out.txt, err.txt without the launcher's own words
{
    local mpi=$1 words=() got try
    words=(-n "$2" "$KEEL")
    shift 2
    while (($#)); do
        if [[ $1 == : ]]; then
            words+=(: -n "$2" "$KEEL")
            shift
        else
            words+=("$1")
        fi
        shift
    done
    for try in {1..15}; do
        if [[ $mpi == openmpi ]]; then
            timeout -k 5 60 mpirun.openmpi $( (($(id -u))) || echo --allow-run-as-root) --oversubscribe "${words[@]}" >out.txt 2>all.txt
        else
            timeout -k 5 60 mpiexec.mpich "${words[@]}" >out.txt 2>all.txt
        fi
        got=$?
        # with AddressSanitizer: gcc 12's search for leaks crashes itself where a thread of Open MPI has just
        # ended: now and then, and on some days four times in a row
        grep -q 'LeakSanitizer has encountered a fatal error' all.txt || break
    done
    grep -E '^(rank [0-9]+ \([^)]*\): )?keel' all.txt >err.txt
    return $got
}

want() # CODE LINES PATTERN MPI N ARGUMENT...: so many lines of errors
{
    local code=$1 lines=$2 pattern=$3 got
    shift 3
    start "$@"
    got=$?
    ((got == code)) || fail "$*: exit code $got, not $code: $(head -c 600 all.txt)"
    grep -qE -e "$pattern" out.txt err.txt || fail "$*: nothing like '$pattern' in: $(head -c 600 out.txt err.txt)"
    (($(wc -l <err.txt) == lines)) || fail "$*: not $lines lines of errors: $(head -c 900 err.txt)"
}

alone() # CODE PATTERN ARGUMENT...: without a launcher
{
    local code=$1 pattern=$2 got
    shift 2
    "$KEEL" "$@" >out.txt 2>err.txt
    got=$?
    ((got == code)) || fail "$*: exit code $got, not $code: $(head -c 300 err.txt)"
    grep -qE -e "$pattern" out.txt err.txt || fail "$*: nothing like '$pattern' in: $(head -c 300 out.txt err.txt)"
}

# ---- without a launcher -------------------------------------------------------------------------
"$KEEL" new mlp --input 4 --classes 3 --sizes 8 -o m.keras >/dev/null || fail "keel new mlp"
cluster='{"cluster": {"chief": ["c:1"], "worker": ["a:1", "b:2", "b:3"]}, "task": {"type": "worker"}}'
TF_CONFIG=$cluster alone 2 'TF_CONFIG names 4 workers.*: mpirun -n 4 --host c,a,b:2 keel evaluate' \
    evaluate m.keras --data "$DATA"
OMPI_COMM_WORLD_SIZE=x OMPI_COMM_WORLD_RANK=0 PMI_SIZE=3 PMI_RANK=3 SLURM_PROCID=0 SLURM_NTASKS=4 \
    alone 0 '103 in' evaluate m.keras --data "$DATA"
alone 2 '--timeout is for several processes' evaluate m.keras --data "$DATA" --timeout 5
alone 2 '--compress is for several processes, which mpirun starts; leave it out' fit m.keras --data "$DATA" --compress bf16 -o x.keras
alone 2 "--compress.*fp16" fit m.keras --data "$DATA" --compress fp16 -o x.keras
alone 2 'no option --compress' evaluate m.keras --data "$DATA" --compress bf16
alone 2 '--shard-optimizer is for several processes, which mpirun starts; leave it out' fit m.keras --data "$DATA" --shard-optimizer -o x.keras
alone 2 '--shard-optimizer is for several processes, of which --processes N' plan m.keras --rows 99 --shard-optimizer
alone 0 'gradients and weights [^,]* \(gradients as bf16\), statistics' plan m.keras --rows 99 --processes 2 --compress bf16 --shard-optimizer
alone 0 "^sharded .*optimizer's state is in 2 parts" plan m.keras --rows 99 --processes 2 --shard-optimizer
alone 3 "Lamb moves the weight '[^']*' as a whole" plan m.keras --rows 99 --processes 2 --shard-optimizer --optimizer lamb
alone 2 '--compress is for several processes, of which --processes N' plan m.keras --rows 99 --compress bf16
alone 2 '--compress bf16 and --reproducible' plan m.keras --rows 99 --processes 2 --reproducible --compress bf16
alone 0 'gradients [^,]* \(as bf16\), statistics' plan m.keras --rows 99 --processes 2 --compress bf16
alone 2 '--timeout -1: must be above 0' evaluate m.keras --data "$DATA" --timeout -1
SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=0 \
    alone 2 'srun started 3 processes without connecting them; use srun --mpi=pmix' evaluate m.keras --data "$DATA"
PMI_RANK=0 PMI_SIZE=3 alone 2 'bench works in one process' bench m.keras --batch-size 8
alone 2 'there is one process, so there is nothing to measure' network
alone 2 '--timeout is for several processes' network --timeout 5

# a keel that was built without MPI
mkdir bare
cp -L "$KEEL" "$KEEL_BUILD"/libkeel.so.0 bare
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=3 LD_LIBRARY_PATH=bare KEEL=bare/keel \
    alone 1 '3 processes, but .* no libkeel_mpi_openmpi.so .*; install libopenmpi-dev and openmpi-bin and build' \
    evaluate m.keras --data "$DATA"
rm -r bare
((failed == 0)) || { echo "$failed failed"; exit 1; }

# ---- with one -----------------------------------------------------------------------------------
fit=(fit m.keras --data "$DATA" --batch-size 16 --epochs 2 --seed 7 --reproducible)
alone 0 '^saved' "${fit[@]}" --devices cpu:0 -o one.keras
alone 0 '103 x 3' predict one.keras --data "$DATA" -o one.npy
alone 0 '103 in' evaluate one.keras --data "$DATA" --reproducible
grep -v '^rows' out.txt >one.txt

# a program whose rows come one after another: x of predictions, y of bytes
{
    printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (103,), }"
    for ((i = 0; i < 103; i++)); do printf "\\00$((i % 3))"; done
} >y.npy
alone 0 '103 x 3' predict one.keras --data "$DATA" -o x.npy
PROGRAM='exec(x,y,rows=103):echo started >>started.txt; cat x.npy y.npy'
printf 'source = "%s"\n[[stage]]\nname = "unbatch"\n' "$PROGRAM" >program.toml
"$KEEL" new mlp --input 3 --classes 3 --sizes 8 -o p.keras >/dev/null || fail "keel new mlp"
program=(fit p.keras --batch-size 16 --epochs 2 --seed 7 --reproducible --no-shuffle)
alone 0 '^saved' "${program[@]}" --data "$PROGRAM" --devices cpu:0 -o program.keras
alone 0 '103 x 3' predict program.keras --data "$PROGRAM" -o program.npy --reproducible
starts=$(wc -l <started.txt)
found=
for mpi in openmpi mpich; do
    launcher=mpirun.openmpi
    [[ $mpi == openmpi ]] || launcher=mpiexec.mpich
    [[ -e $KEEL_BUILD/libkeel_mpi_$mpi.so ]] && command -v $launcher >/dev/null || continue
    found="$found $mpi"

    want 0 0 ' 103 rows; 3 processes on 1 machine, the first with 1 device' $mpi 3 "${fit[@]}" --devices cpu:0 -o $mpi.keras --history $mpi.csv
    (($(grep -c '^saved' out.txt) == 1)) || fail "$mpi: not one process speaks"
    (($(wc -l <$mpi.csv) == 3)) || fail "$mpi: the history has not three lines"
    alone 0 '103 x 3' predict $mpi.keras --data "$DATA" -o $mpi.npy
    cmp -s one.npy $mpi.npy || fail "$mpi: one process and three learned other weights"
    want 0 0 '103 x 3' $mpi 2 predict one.keras --data "$DATA" --devices cpu:0-1 -o together.npy --reproducible
    alone 0 '103 x 3' predict one.keras --data "$DATA" -o alone.npy --reproducible
    cmp -s alone.npy together.npy || fail "$mpi: one process and two predict other values"
    want 0 0 '103 in' $mpi 2 evaluate one.keras --data "$DATA" --reproducible
    grep -v '^rows' out.txt | cmp -s - one.txt || fail "$mpi: one process and two evaluate differently"

    # gradients as bfloat16: that is said, and a run that is repeated has the same bits
    rounded=(fit m.keras --data "$DATA" --batch-size 16 --epochs 2 --seed 7 --compress bf16)
    for i in 1 2; do
        want 0 0 ', gradients travel as bf16$' $mpi 2 "${rounded[@]}" --apart --devices cpu:0 -o $mpi-$i.keras
        grep -q '^compress bf16' out.txt || fail "$mpi: the report does not say how gradients travelled"
        alone 0 '103 x 3' predict $mpi-$i.keras --data "$DATA" -o $i.npy
    done
    cmp -s 1.npy 2.npy || fail "$mpi: gradients as bfloat16 give other weights again"
    cmp -s 1.npy one.npy && fail "$mpi: gradients as bfloat16 have the bits of float32"
    want 0 0 '^saved' $mpi 2 "${rounded[@]}" --epochs 1 --apart --devices cpu:0 -o $mpi-rounded.keras --checkpoint $mpi-rounded
    alone 0 'the checkpoint is used, but its gradients travelled in another type' fit m.keras --data "$DATA" \
        --batch-size 16 --epochs 2 --seed 7 --devices cpu:0 -o $mpi-rounded.keras --checkpoint $mpi-rounded --resume
    want 2 1 '^keel fit: --compress bf16 and --reproducible' $mpi 2 "${rounded[@]}" --reproducible -o x.keras
    differ=(fit m.keras --data "$DATA" --apart -o x.keras --timeout 5)
    want 2 1 '^keel fit: .*process 1 \(.*\): its epochs is 2, that of process 0 is 1' $mpi 1 "${differ[@]}" : 1 "${differ[@]}" --epochs 2
    want 2 1 '^rank 1 .*keel fit: --validation or .* is not that of the first process' $mpi 1 "${differ[@]}" --validation "$DATA" : 1 "${differ[@]}"
    want 2 1 '^keel fit: .*process 1 \(.*\): its checkpoint is false, that of process 0 is true' $mpi 1 "${differ[@]}" --checkpoint differ : 1 "${differ[@]}"
    want 2 1 '^keel fit: .*process 1 \(.*\): its compress is "none", that of process 0 is "bf16"' $mpi 1 "${rounded[@]}" --apart -o x.keras \
        : 1 fit m.keras --data "$DATA" --batch-size 16 --epochs 2 --seed 7 --apart -o x.keras

    # the optimizer's state in parts: to the same bits, also from a checkpoint of another number of processes
    parts=("${fit[@]}" --apart --shard-optimizer --devices cpu:0)
    want 0 0 ", each with 1/3 of the optimizer's state, which is lost with it\$" $mpi 3 "${parts[@]}" -o $mpi-parts.keras
    grep -q '^sharded  the .* in 3 parts' out.txt || fail "$mpi: the report does not say that the state was in parts"
    want 0 0 '^saved' $mpi 3 "${parts[@]}" --epochs 1 -o $mpi-first.keras --checkpoint $mpi-parts --checkpoint-every 2
    want 0 1 'goes on from the checkpoint after epoch 1' $mpi 2 "${parts[@]}" -o $mpi-two.keras --checkpoint $mpi-parts --resume
    rm -f $mpi-parts/*000002-*
    alone 0 'goes on from the checkpoint after epoch 1' "${fit[@]}" --devices cpu:0 -o $mpi-alone.keras --checkpoint $mpi-parts --resume
    for i in parts two alone; do
        alone 0 '103 x 3' predict $mpi-$i.keras --data "$DATA" -o $i.npy
        cmp -s $i.npy one.npy || fail "$mpi: $i: an optimizer in parts learns other weights"
        # the state is in the file: a further epoch has its bits, too
        alone 0 '^saved' fit $mpi-$i.keras --data "$DATA" --batch-size 16 --reproducible --devices cpu:0 -o more.keras
        alone 0 '103 x 3' predict more.keras --data "$DATA" -o more-$i.npy
    done
    alone 0 '^saved' fit one.keras --data "$DATA" --batch-size 16 --reproducible --devices cpu:0 -o more.keras
    alone 0 '103 x 3' predict more.keras --data "$DATA" -o more.npy
    for i in parts two alone; do
        cmp -s more-$i.npy more.npy || fail "$mpi: $i: an optimizer in parts leaves another state"
    done
    want 0 0 '^--shard-optimizer changes nothing: the processes act as one' $mpi 2 "${fit[@]}" --shard-optimizer -o x.keras
    want 3 1 "^keel fit: Muon moves the weight '[^']*' as a whole" $mpi 2 "${parts[@]}" --optimizer muon -o x.keras

    # what connects them, as keel simulate takes it
    want 0 1 '^25.000Gbit,50.000us,local=[0-9.]+GB,local-latency=[0-9.]+us$' $mpi 3 network
    alone 0 '^ +2 +16 ' simulate m.keras --batch-size 64 --machines 2 --processes-per-machine 2 --devices cpu:0 --seconds 0.000001 \
        --network "$(cat out.txt)"

    # a program is started by the first process alone, whose rows go to all
    rm started.txt
    want 0 0 '^saved' $mpi 3 "${program[@]}" --data "$PROGRAM" --devices cpu:0 -o $mpi-program.keras
    want 0 0 '103 x 3' $mpi 3 predict $mpi-program.keras --data "$PROGRAM" -o $mpi-program.npy --reproducible
    cmp -s program.npy $mpi-program.npy || fail "$mpi: one process and three learn other things of a program"
    (($(wc -l <started.txt) == starts)) || fail "$mpi: the program was started $(wc -l <started.txt) times, not $starts"
    want 0 0 '^saved' $mpi 2 "${program[@]}" --data program.toml --devices cpu:0 -o $mpi-pipeline.keras
    want 0 0 '^saved' $mpi 3 "${program[@]}" --epochs 1 --data "$PROGRAM" --devices cpu:0 -o $mpi-first.keras --checkpoint $mpi-kept
    want 0 1 'goes on from the checkpoint after epoch 1' $mpi 2 "${program[@]}" --data "$PROGRAM" --devices cpu:0 -o $mpi-again.keras \
        --checkpoint $mpi-kept --resume
    alone 0 '103 x 3' predict $mpi-again.keras --data "$PROGRAM" -o again.npy --reproducible
    cmp -s program.npy again.npy || fail "$mpi: a fit of three that two resume learns other things of a program"
    want 1 1 '^keel fit: .*step 7 of epoch 1, after 103 rows .*ended with status 3' $mpi 3 "${program[@]}" --data 'exec(x,y):cat x.npy y.npy; exit 3' -o x.keras
    want 1 1 '^keel fit: exec:true: ended without a batch' $mpi 3 "${program[@]}" --data 'exec(x,y):true' -o x.keras

    # errors: once, by whom they concern, with one exit code
    want 2 1 '^keel fit: there is no option --epohcs' $mpi 3 fit m.keras --data "$DATA" --epohcs 2 -o x.keras
    want 1 1 '^keel evaluate: nowhere/: does not exist' $mpi 3 evaluate m.keras --data nowhere/
    want 1 1 '^rank 1 \(.*\): keel evaluate: nowhere/: does not exist' $mpi 1 evaluate m.keras --data "$DATA" \
        : 1 evaluate m.keras --data nowhere/
    want 1 1 "^keel fit: process 0 .*no devices of kind 'tpu'" $mpi 2 fit m.keras --data "$DATA" --devices tpu -o x.keras
    want 1 1 '^keel fit: .*is not finite' $mpi 2 fit m.keras --data "$DATA" --optimizer sgd \
        --learning-rate 1e38 --devices cpu:0 -o x.keras
    rm -f x*.keras
done
[[ -n $found ]] || { echo "no launcher of an MPI was found"; exit 77; }
((failed == 0)) || { echo "$failed failed"; exit 1; }
echo "several processes:$found"

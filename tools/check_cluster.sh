#!/bin/bash
# check_cluster.sh: the job script of docs/cluster.md, taken from the page itself, in a real Slurm of two
# nodes on this machine (tools/cluster.sh), by `make check-cluster`. KEEL is the command. Each case prints a
# line. The last line is 'N passed, N failed'; where Slurm cannot run, a line says why, and the exit code is 77.
# The case `plain` runs it as it is, with other limits (tasks of one core, five minutes) and, for MPICH, another
# --mpi; the others change what they say. CASES='plain lost' runs those alone. Open MPI runs on one of the two nodes: it would connect two by TCP, which
# it does not do within one machine. MPICH runs on both.
set -u
cd "$(dirname "$0")/.." || exit 2
root=$PWD
keel=$(realpath "${KEEL:-build/keel}") || exit 2
if [[ ${1:-} != inside ]]; then
    work=$(mktemp -d "${TMPDIR:-/tmp}/keel-cluster.XXXXXX") || exit 2
    chmod 755 "$work"
    KEEL=$keel bash tools/cluster.sh "$work/slurm" bash tools/check_cluster.sh inside "$work"
    code=$?
    if ((code == 0 || code == 77)); then rm -rf "$work"; else echo "what is left of it: $work"; fi
    exit $code
fi

work=$2
passed=0 failed=0
cd "$work" || exit 2
mkdir bin
ln -s "$keel" bin/keel
export PATH=$work/bin:$PATH TMPDIR=$work
export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none

# ---- the page's script, its model and its data ------------------------------------------------------
awk '/^```bash$/ { on = 1; next } /^```$/ { on = 0 } on' "$root/docs/cluster.md" >page.sh
grep -q '^#SBATCH' page.sh && grep -q 'keel fit m.keras --data photos/' page.sh || { echo "error: docs/cluster.md has no job script"; exit 1; }
"$(dirname "$keel")/make_shapes" photos 300 1 >/dev/null || exit 1
"$keel" new cnn --input 16,16,3 --classes 10 --sizes 4 -o m.keras >/dev/null || exit 1

words() # the words of keel fit in the page, without checkpoints and files
{
    sed -n '/keel fit/,/[^\\]$/p' "$work/page.sh" | tr -d '\\\n' |
        sed 's/.*keel fit/fit/; s/--checkpoint checkpoints//; s/--resume//; s/--history [^ ]*//; s/-o [^ ]*//'
}
"$keel" $(words) --devices cpu:0 -o one.keras >one.log 2>&1 || { cat one.log; exit 1; }

weights() # FILE: what it predicts, to the bit
{
    [[ -e $1 ]] && "$keel" predict "$1" --data photos/ --devices cpu:0 --reproducible -o p.npy >/dev/null 2>&1 && sha256sum <p.npy
}
expected=$(weights one.keras)

good() { passed=$((passed + 1)); printf 'ok      %-64s %3d s\n' "$1" $((SECONDS - begin)); }
bad()
{
    failed=$((failed + 1))
    printf 'FAILED  %s: %s\n' "$1" "$2"
    tail -n 12 "$case"/fit*.log 2>/dev/null
}

folder() # NAME: a folder with the script, the model and the data
{
    case=$work/$1 begin=$SECONDS
    mkdir "$case"
    ln -s ../photos ../m.keras "$case/"
    sed "s/--mpi=pmix/--mpi=$mpi/" page.sh >"$case/fit.sh"
    cd "$case" || exit 2
}

submit() # ARGUMENT...: the number of the job
{
    local nodes=1
    [[ $mpi == pmix ]] || nodes=2
    sbatch --parsable --cpus-per-task=1 --overcommit --time=5 --nodes=$nodes "$@" fit.sh
}

field() # JOB FIELD
{
    scontrol show job "$1" -o 2>/dev/null | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1
}

await() # SECONDS COMMAND...: until it succeeds
{
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.2
    done
}
is() { [[ $(field "$1" JobState) =~ ^($2)$ ]]; }
ended() { is "$1" 'COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL'; }
epochs() { (($(cat history.csv 2>/dev/null | wc -l) > $1)); }
tasks() # JOB: the processes of keel, by rank
{
    local p rank
    for p in $(pgrep -x keel); do
        [[ $(readlink "/proc/$p/cwd") == "$case" ]] || continue
        rank=$(tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | sed -n 's/^SLURM_PROCID=//p')
        echo "${rank:-?} $p"
    done
}
task() { tasks | sed -n "s/^$1 //p" | head -n 1; }
same_bits() { [[ -n $expected && $(weights "$1") == "$expected" ]]; }
said() { grep -qE -e "$1" fit*.log 2>/dev/null; }

verify() # NAME CONDITION...: each a command; the first that fails is named
{
    local name=$1 condition
    shift
    for condition in "$@"; do
        eval "$condition" || { bad "$name" "not: $condition"; cd "$work"; return 1; }
    done
    good "$name"
    cd "$work" || exit 2
}

# ---- jobs that nothing happens to -------------------------------------------------------------------
plain()
{
    folder plain-$mpi
    local id
    id=$(submit)
    await 100 ended "$id"
    verify "4 tasks, srun --mpi=$mpi: the bits of one process" "is $id COMPLETED" \
        "[[ \$(field $id ExitCode) == 0:0 ]]" "said '; 4 processes on 1 machine'" "same_bits trained.keras"
}

# mpirun in the job's script takes the place of srun
batch()
{
    folder batch-$mpi
    local id with="mpiexec.mpich"
    [[ $mpi == pmi2 ]] || with="mpirun.openmpi --allow-run-as-root --oversubscribe"
    if ! command -v ${with%% *} >/dev/null; then
        echo "(there is no ${with%% *})"
        cd "$work" || exit 2
        return
    fi
    sed -i "s/^srun .*/$with -n 4 \\\\/" fit.sh
    id=$(submit)
    await 100 ended "$id"
    verify "4 tasks, ${with%% *} in the script: the bits of one process" "is $id COMPLETED" \
        "said '; 4 processes on 1 machine'" "same_bits trained.keras"
}

unconnected()
{
    folder unconnected-$mpi
    local code
    srun -n 4 -N 2 --overcommit keel $(words) -o trained.keras >fit.log 2>&1
    code=$?
    verify "srun without PMI: one line, and nobody trains" "((code == 2))" "[[ ! -e trained.keras ]]" \
        "((\$(grep -c 'started 4 processes without connecting them; use srun --mpi=pmix' fit.log) == 1))" \
        "((\$(grep -c 'keel' fit.log) == 1))"
}

# ---- jobs that end and go on ------------------------------------------------------------------------
requeue()
{
    folder requeue-$mpi
    local id done_before
    id=$(submit)
    await 30 epochs 3
    scontrol requeue "$id"
    await 40 said 'stopped by SIGTERM; the model after step'
    done_before=$(wc -l <history.csv)
    await 100 ended "$id"
    verify "scontrol requeue in the middle, $mpi: the same bits" "is $id COMPLETED" "((done_before < 90))" \
        "[[ \$(field $id Restarts) == 1 ]]" "said 'goes on from the checkpoint'" "same_bits trained.keras"
}

other()
{
    folder other-$mpi
    local id next done_before
    id=$(submit)
    await 30 epochs 3
    scancel "$id"
    await 40 ended "$id"
    done_before=$(wc -l <history.csv)
    next=$(submit --nodes=1 --ntasks=2)
    await 100 ended "$next"
    verify "scancel, then a job of 2 tasks in place of 4, $mpi: the same bits" "is $id CANCELLED" "((done_before < 90))" \
        "is $next COMPLETED" "said 'goes on from the checkpoint'" "said '; 2 processes on'" "same_bits trained.keras"
}

term()
{
    folder term-$mpi
    local id
    id=$(submit)
    await 30 epochs 3
    scancel --signal=TERM "$id"
    await 40 said 'stopped by SIGTERM; the model after step'
    ls >before.txt
    await 100 ended "$id"
    verify "SIGTERM to all tasks, $mpi: saved, put back, the same bits" "said '^keel fit: stopped by SIGTERM; the model after step'" \
        "grep -qx trained.interrupted.keras before.txt" "is $id COMPLETED" "[[ \$(field $id Restarts) == 1 ]]" \
        "said 'goes on from the checkpoint'" "same_bits trained.keras"
}

code()
{
    folder code-$mpi
    local id
    sed -i 's/^if .*requeue.*//' fit.sh
    id=$(submit)
    await 30 epochs 3
    scancel --signal=TERM "$id"
    await 40 ended "$id"
    verify "SIGTERM without the requeue, $mpi: Slurm sees 143" "is $id FAILED" "[[ \$(field $id ExitCode) == 143:0 ]]" \
        "[[ -e trained.interrupted.keras ]]"
}

# The signal that the page's script asks for, before a time limit of a minute. Slurm looks at limits
# every half minute.
limit()
{
    folder limit-$mpi
    local id
    sed -i 's/--epochs 90/--epochs 100000/' fit.sh
    id=$(submit --time=1 --signal=TERM@30)
    await 100 said 'stopped by SIGTERM; the model after step'
    await 30 is "$id" PENDING
    verify "the time limit is near, $mpi: saved and put back" "said '^keel fit: stopped by SIGTERM'" "is $id PENDING" \
        "[[ \$(field $id Restarts) == 1 ]]" "ls checkpoints/*.keras >/dev/null"
    scancel "$id"
}

# ---- tasks that are lost, where each works by itself ----------------------------------------------------------------------------
lost() # RANK SIGNAL PATTERN
{
    folder lost-$mpi-$1-$2
    local id pid since took
    sed -i 's/-o trained/--timeout 5 --apart -o trained/' fit.sh
    id=$(submit --no-requeue)
    await 30 epochs 3
    pid=$(task $1)
    kill -$2 "$pid"
    since=$SECONDS
    await 60 ended "$id"
    took=$((SECONDS - since))
    kill -9 "$pid" 2>/dev/null
    verify "rank $1 gets SIG$2, $mpi: named, the job ends in $took s" "is $id FAILED" "((took < 30))" "said '$3'" \
        "ls checkpoints/*.keras trained.interrupted.keras >/dev/null"
}

types=$(srun --mpi=list 2>&1)
for mpi in pmix pmi2; do
    plugin=openmpi
    [[ $mpi == pmix ]] || plugin=mpich
    if ! grep -qw $mpi <<<"$types" || [[ ! -e $(dirname "$keel")/libkeel_mpi_$plugin.so ]]; then
        echo "(no srun --mpi=$mpi with $plugin here)"
        continue
    fi
    for name in ${CASES:-plain batch unconnected requeue other term code limit lost}; do
        case=
        if [[ $name == lost ]]; then
            for victim in 2 0; do
                for number in KILL STOP; do lost $victim $number "process $victim |task $victim: Killed"; done
            done
        elif [[ $mpi == pmix || $name != unconnected && $name != limit ]]; then
            $name
        fi
    done
done

echo "$passed passed, $failed failed"
((failed == 0))

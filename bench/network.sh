#!/bin/bash
# network.sh PART [RESULTS]: steps of several processes on networks of some rate and delay, and on this machine.
# Parts: wires (Keel, 2 machines), peers (PyTorch and TensorFlow, 2 machines), processes (Keel, 1 to 8
# processes here, beside lanes of one), and page, which writes bench/processes.md from the results. A part
# takes about four minutes and wants a machine that does nothing else. Machines are namespaces, see
# tests/network.sh; each process has one core. PEERS: a Python with torch, tensorflow and keras.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tests/network.sh"
part=${1:?a part}
results=$(realpath "${2:-$here/../build/bench/processes.tsv}")
export KEEL_BUILD=${KEEL_BUILD:-$(cd "$here/../build" && pwd)}
KEEL=$KEEL_BUILD/keel
if [[ $part == page ]]; then exec python3 "$here/processes.py" "$results" "$here/processes.md"; fi
network_enter "$0" "$@"
KEEL_TEST_TMP=$(mktemp -d /tmp/keel-bench.XXXXXX) && export KEEL_TEST_TMP TMPDIR=$KEEL_TEST_TMP
trap 'rm -rf "$KEEL_TEST_TMP"' EXIT
cd "$KEEL_TEST_TMP" || exit 2
mkdir -p "$(dirname "$results")"
WIRED="mlp:64 mlp:256 mnist-cnn:64 mnist-cnn:256 resnet18:16"
ALL="mlp:64 mlp:256 mnist-cnn:64 mnist-cnn:256 lstm:32 transformer:32 conv1d:32 gpt:12 unet:16 mobilenetv2:16 resnet18:16 efficientnetb0:16 densenet121:16 resnet50:16 convnexttiny:16"
network_limit=40
# a process's core is its rank
pinned=(bash -c 'r=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}; exec taskset -c $((r % $(nproc --all))) "$@"' pinned)

note() # VALUE...: a line of results; later lines replace earlier ones
{
    local IFS=$'\t'
    echo "$*" | tee -a "$results"
}

data_of() # WORK: exported once
{
    [[ -d $1 ]] || "$KEEL" bench "$1" --batch-size 16 --export "$1" --seconds 0.01 --no-profile >/dev/null 2>&1
}

plan_of() # WORK BATCH: options of a fit, in `fit`, with its steps in an epoch in `steps`
{
    steps=20
    case $1 in
    mlp | mnist-cnn) ;;
    lstm | transformer | conv1d) steps=3 ;;
    *) steps=1 ;;
    esac
    data_of "$1"
    fit=(fit "$PWD/$1/model.keras" --data "$PWD/$1/x.npy,$PWD/$1/y.npy" --batch-size "$2" --steps-per-epoch $steps --epochs 4 --timeout 20)
}

ms_of() # FILE STEPS: the median of the epochs after the first, a step
{
    sed -nE 's/^epoch +[0-9]+\/.* ([0-9.]+) (ms|s)  .*rows\/s.*/\1 \2/p' "$1" | tail -n +2 |
        awk -v n="$2" '{ print $1 * ($2 == "s" ? 1000 : 1) / n }' | sort -n | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}

sent() # bytes that host0 has put on the wire
{
    on 0 cat /sys/class/net/wire/statistics/tx_bytes
}

# Two processes of half a batch each, which know nothing of each other: what a step costs without a network.
computes()
{
    local cell work batch out
    for cell in $WIRED; do
        work=${cell%:*} batch=${cell#*:}
        plan_of "$work" "$((batch / 2))"
        out=("${fit[@]}")
        unset 'out[-1]' 'out[-1]' # --timeout is of several processes
        taskset -c 1 "$KEEL" "${out[@]}" --devices cpu:0 -o b.keras >/dev/null 2>&1 &
        taskset -c 0 "$KEEL" "${out[@]}" --devices cpu:0 -o a.keras >out.txt 2>&1
        wait $!
        note compute "$work" "$batch" - - "$(ms_of out.txt $steps)" -
    done
}

wires()
{
    local rate delay cell work batch before
    computes
    for rate in ${RATES:-1gbit 10gbit 25gbit}; do
        for delay in ${DELAYS:-0 50 200 1000}; do # us
            if ((delay)); then network_wire $delay 0 $rate 65000; else network_bridge $rate; fi
            for cell in $WIRED; do
                work=${cell%:*} batch=${cell#*:}
                plan_of "$work" "$batch"
                before=$(sent)
                network_mpi openmpi 2 "${pinned[@]}" "$KEEL" "${fit[@]}" --devices cpu:0 -o o.keras >out.txt 2>&1 || head -c 300 out.txt
                note keel "$work" "$batch" $rate $delay "$(ms_of out.txt $steps)" $((($(sent) - before) / (4 * steps)))
            done
            network_gone >/dev/null
        done
    done
}

peer() # NAME WORK BATCH RATE DELAY; RATE -: on this machine, without a wire
{
    local i run=() config other first=10.77.0.1 second=10.77.0.2 at=wire
    [[ $4 == - ]] && first=127.0.0.1 second=127.0.0.1 at=lo
    for i in 1 0; do
        [[ $4 == - ]] && run=() || run=(on $i)
        config='{"cluster": {"worker": ["'$first:3871'", "'$second:3872'"]}, "task": {"type": "worker", "index": '$i'}}'
        "${run[@]}" env MASTER_ADDR=$first MASTER_PORT=29571 RANK=$i WORLD_SIZE=2 GLOO_SOCKET_IFNAME=$at TF_CONFIG="$config" OMP_NUM_THREADS=1 \
            taskset -c $i timeout 100 "$PEERS" "$here/peers/$1.py" "$2" --batch-size "$3" >peer$i.txt 2>peer$i.err &
        ((i)) && other=$!
    done
    wait $! "$other" # and not for the machines
    note "$1" "$2" "$3" "$4" "$5" "$(sed -nE 's/.*"ms": ([0-9.]+).*/\1/p' peer0.txt)" -
}

peers()
{
    local way cell name
    for way in ${WAYS:--:0 1gbit:200 10gbit:50}; do
        for name in ${NAMES:-ddp mwms}; do
            for cell in ${CELLS:-mlp:64 mlp:256 mnist-cnn:64 mnist-cnn:256}; do
                set -- ${way%:*} ${way#*:}
                [[ $1 == - ]] || network_wire "$2" 0 "$1" 65000
                peer $name "${cell%:*}" "${cell#*:}" "$1" "$2"
                [[ $1 == - ]] || network_gone >/dev/null
            done
        done
    done
}

processes()
{
    local cell work batch n bare
    export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none
    for cell in ${CELLS:-$ALL}; do
        work=${cell%:*} batch=${cell#*:}
        plan_of "$work" "$batch"
        bare=("${fit[@]}")
        unset 'bare[-1]' 'bare[-1]'
        for n in 1 2 4 8; do
            timeout 60 "$KEEL" "${bare[@]}" --devices "cpu:0-$((n - 1))" -o o.keras >out.txt 2>&1
            note lanes "$work" "$batch" - $n "$(ms_of out.txt $steps)" -
            ((n > 1)) || continue
            timeout 60 mpirun.openmpi --allow-run-as-root --oversubscribe -n $n "${pinned[@]}" "$KEEL" "${fit[@]}" --devices cpu:0 -o o.keras >out.txt 2>&1
            note openmpi "$work" "$batch" - $n "$(ms_of out.txt $steps)" -
        done
    done
}

case $part in
processes) processes ;;
wires | peers)
    [[ $part != peers || -x ${PEERS:-} ]] || { echo "PEERS=PYTHON is needed"; exit 2; }
    network_hosts 2
    $part
    ;;
*)
    echo "there is no part $part"
    exit 2
    ;;
esac

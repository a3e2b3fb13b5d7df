#!/bin/bash
# simulate_network.sh BUILD [RATE...]: compares `keel simulate --machines 2` with two processes that are
# measured in namespaces, joined by a bridge whose ports send at most RATE (as tc has it: 100mbit, 1gbit).
# Prints a table. Needs root or user namespaces, and the MPIs of tests/network.sh.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[[ $$ == 1 ]] || export KEEL_TEST_TMP=$(mktemp -d)
export KEEL_BUILD=$(cd "${1:?BUILD}" && pwd)
. "$here/../tests/network.sh"
network_enter "$0" "$@"
shift
rates=("$@")
((${#rates[@]})) || rates=(100mbit 1gbit)
network_limit=60
cd "$KEEL_TEST_TMP" || exit 2
keel=$KEEL_BUILD/keel
cores=$(nproc)
latency=30 # us, of a message through TCP and a bridge of this machine

# each process has a core of its own, whatever the launcher binds
cat >bound <<END
#!/bin/bash
exec taskset -c \$((\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK:-0}} % $cores)) "\$@"
END
chmod +x bound

median() # of the numbers on stdin
{
    sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'
}

measured() # MPI WORK BATCH EPOCHS: ms a step
{
    network_mpi "$1" 2 "$PWD/bound" "$keel" fit "$2/model.keras" --data "$2/x.npy,$2/y.npy" --batch-size "$3" --epochs "$4" \
        --devices cpu:0 -o out.keras 2>err.txt | sed -n 's/^epoch.* \([0-9,]*\) rows\/s.*/\1/p' | tr -d , | tail -n +2 |
        awk -v b="$3" '{ print 1000 * b / $1 }' | median
}

predicted() # WORK BATCH NETWORK
{
    "$keel" simulate "$1/model.keras" --machines 2 --batch-size "$2" --devices cpu:0 --network "$3" --seconds 0.5 --json |
        sed 's/.*"points"//; s/.*"step_ms": \([0-9.]*\).*/\1/'
}

network_hosts 2
for work in mlp mnist-cnn; do "$keel" bench $work --batch-size 64 --export $work >/dev/null || exit 1; done
echo '| rate, latency | work | MPI | measured ms a step | predicted | over it |'
echo '|---|---|---|---|---|---|'
for rate in "${rates[@]}"; do
    network_bridge "$rate"
    text=${rate/mbit/Mbit} && text=${text/gbit/Gbit},${latency}us
    for work in mlp:64 mlp:256 mnist-cnn:64; do
        for mpi in openmpi mpich; do
            m=$(measured $mpi "${work%:*}" "${work#*:}" 3)
            p=$(predicted "${work%:*}" "${work#*:}" "$text")
            [[ $m && $p ]] || { cat err.txt >&2; continue; }
            echo "| $text | ${work%:*}, batch ${work#*:} | $mpi | $m | $p | $(awk "BEGIN { printf \"%.2f\", $p / $m }") |"
        done
    done
    network_gone
done

#!/bin/bash
# simulate_network.sh BUILD [RATE...]: compares `keel simulate --machines 2` with two processes that are
# measured in namespaces, joined by a bridge whose ports send at most RATE (as tc has it: 100mbit, 1gbit).
# Writes the part on networks of bench/simulate.md; further options of simulate.py: OPTIONS. Needs root or
# user namespaces, and the MPIs of tests/network.sh.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[[ $$ == 1 ]] || export KEEL_TEST_TMP=$(mktemp -d)
export KEEL_BUILD=$(cd "${1:?BUILD}" && pwd)
. "$here/../tests/network.sh"
network_enter "$0" "$@"
shift
rates=("$@")
((${#rates[@]})) || rates=(1gbit 10gbit)
network_limit=1800 # seconds of a command: on 100mbit a step of mlp takes a quarter of one
cd "$KEEL_TEST_TMP" || exit 2
trap 'rm -rf "$KEEL_TEST_TMP"' EXIT
cores=$(nproc)

# each process has a core of its own, whatever the launcher binds
cat >bound <<END
#!/bin/bash
exec taskset -c \$((\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK:-0}} % $cores)) "\$@"
END
chmod +x bound

network_hosts 2
for mpi in openmpi mpich; do
    {
        echo '#!/bin/bash'
        declare -p network_pid network_launchers network_limit
        declare -f on network_agent network_mpi
        echo "network_mpi $mpi 2 $PWD/bound \"\$@\""
    } >start-$mpi
    chmod +x start-$mpi
done
head=()
for rate in "${rates[@]}"; do
    network_bridge "$rate"
    python3 "$here/simulate.py" --keel "$KEEL_BUILD/keel" --machines 2 --works mlp:64,mlp:256,mnist-cnn:64,mnist-cnn:256 --title "$rate" \
        --launcher openmpi="$PWD/start-openmpi" --launcher mpich="$PWD/start-mpich" --rounds 3 "${head[@]}" ${OPTIONS:-} | tee -a rows
    head=(--no-head)
    network_gone
done
python3 "$here/simulate.py" --paste rows --rounds 3 --page "$here/simulate.md"

# shellcheck shell=bash
# Machines with a network between them, made of namespaces, for the scripts that source this. All of it
# lies in a process namespace of its own: when the script ends, however it does, the kernel ends all
# that it started, and takes the devices away. Nothing of it is seen outside.
#
#   network_enter "$0" "$@"         first of all: the script again, in namespaces; exit 77 where it cannot
#   network_hosts N                 machines host0 to host(N-1), with a network for launchers alone
#   network_wire DELAY_US LOSS [RATE [MTU]]   joins host0 and host1 by tests/mpi/forwarder.c
#   network_bridge [RATE]           joins all by a bridge; RATE as tc has it: 1gbit
#   network_cut, network_mend       of a wire: drop everything, and no more
#   network_gone                    takes the wire or bridge away; of a wire it prints what passed
#   on HOST COMMAND...              runs it on machine HOST (a number)
#   network_mpi MPI N ARGUMENT...   mpirun of that MPI on host0: one process on each of N machines, by TCP
#                                   over the wire or bridge alone. The launcher has its own network,
#                                   `control`, unless network_launchers=wire.
# All but network_enter need KEEL_TEST_TMP and KEEL_BUILD.
network_pid=() # of a process that keeps each machine's namespaces
network_forwarder=
network_launchers=control
network_limit=25 # seconds that a job may take

network_enter()
{
    local words=(--pid --fork --kill-child --mount --mount-proc --net --uts --ipc) why
    if [[ $$ == 1 ]]; then
        trap 'exit 143' TERM INT HUP # the first process of a namespace ignores what it does not catch
        mount --make-rprivate /
        ip link set lo up
        return
    fi
    [[ $(id -u) == 0 ]] || words=(--user --map-root-user "${words[@]}")
    for why in ip tc nsenter unshare; do
        command -v $why >/dev/null || { echo "there is no program $why (packages iproute2, util-linux)"; exit 77; }
    done
    why=$(unshare "${words[@]}" true 2>&1) || { echo "namespaces are not permitted: $why"; exit 77; }
    exec unshare "${words[@]}" bash "$@"
}

on()
{
    local host=$1
    shift
    nsenter -t "${network_pid[host]}" --net --uts --mount --wd="$PWD" -- "$@"
}

network_hosts()
{
    local i n=$1
    : >"$KEEL_TEST_TMP/hosts"
    echo "127.0.0.1 localhost" >>"$KEEL_TEST_TMP/hosts"
    mount --bind "$KEEL_TEST_TMP/hosts" /etc/hosts
    for ((i = 0; i < n; i++)); do # some MPIs look for devices in /sys
        unshare --net --uts --mount bash -c 'mount -t sysfs sysfs /sys && exec sleep infinity' &
        network_pid[i]=$!
        echo "10.78.0.$((i + 1)) host$i" >>"$KEEL_TEST_TMP/hosts"
    done
    ip link add control type bridge && ip link set control up || { echo "no bridge can be made"; exit 77; }
    for ((i = 0; i < n; i++)); do
        until [[ $(readlink /proc/${network_pid[i]}/ns/net) != $(readlink /proc/self/ns/net) &&
            $(cat /proc/${network_pid[i]}/comm) == sleep ]]; do sleep 0.01; done
        on $i hostname host$i
        on $i ip link set lo up
        on $i sysctl -qw net.ipv6.conf.all.disable_ipv6=1 2>/dev/null
        network_port control $i
        on $i ip addr add "10.78.0.$((i + 1))/24" dev control
    done
}

network_port() # BRIDGE HOST: a device of the host, with the bridge's name
{
    ip link add "$1$2" type veth peer name "$1" netns "${network_pid[$2]}" || { echo "no veth can be made"; exit 77; }
    ip link set "$1$2" master "$1" up
    on "$2" ip link set "$1" up
}

network_bytes() # RATE NS: that pass in so many ns
{
    local bits=${1%bit}
    bits=${bits/%k/000} bits=${bits/%m/000000} bits=${bits/%g/000000000}
    echo $((bits / 8 * $2 / 1000000000))
}

# At most RATE leaves the device. After a pause some bytes leave at once: two packets, and those of
# 0.1 ms, since the kernel looks no more often.
network_rate() # HOST DEVICE RATE PACKET
{
    [[ -z $3 ]] || on "$1" tc qdisc add dev "$2" root tbf rate "$3" burst $((2 * $4 + $(network_bytes "$3" 100000))) latency 50ms
}

# A loss is repaired after 10 ms and not after 200, so that tests are short.
network_address() # HOST DEVICE
{
    on "$1" ip addr add "10.77.0.$(($1 + 1))/24" dev "$2" &&
        on "$1" ip link set "$2" up && on "$1" ip route change 10.77.0.0/24 dev "$2" src "10.77.0.$(($1 + 1))" rto_min 10ms
}

network_wire()
{
    local i mtu=${4:-1500} said=$KEEL_TEST_TMP/forwarder
    mkfifo "$said.fifo"
    "$KEEL_BUILD/tests/mpi_forwarder" "${network_pid[0]}" wire "${network_pid[1]}" wire "$1" "$2" >"$said.fifo" &
    network_forwarder=$!
    exec {network_said}<"$said.fifo"
    rm "$said.fifo"
    read -r i <&"$network_said" && [[ $i == ready ]] || { echo "no TUN devices can be made"; exit 77; }
    for i in 0 1; do
        on $i ip link set wire mtu "$mtu" txqueuelen 1000
        network_rate $i wire "${3:-}" "$mtu"
        network_address $i wire
    done
}

network_bridge()
{
    local i packet=65536 # what TCP sends at once: more of it costs fewer cycles, less follows the rate closer
    [[ -z ${1:-} ]] || packet=$(network_bytes "$1" 60000)
    packet=$((packet < 16384 ? 16384 : packet > 65536 ? 65536 : packet))
    ip link add wire type bridge && ip link set wire up || { echo "no bridge can be made"; exit 77; }
    for i in "${!network_pid[@]}"; do
        network_port wire "$i"
        on "$i" ip link set wire gso_max_size $packet
        network_rate "$i" wire "${1:-}" $packet
        network_address "$i" wire
    done
}

network_cut()
{
    kill -USR1 $network_forwarder
}

network_mend()
{
    kill -USR2 $network_forwarder
}

network_gone()
{
    local i
    if [[ $network_forwarder ]]; then
        kill -TERM $network_forwarder
        cat <&"$network_said"
        exec {network_said}<&-
        wait $network_forwarder
        network_forwarder=
    else
        for i in "${!network_pid[@]}"; do ip link del "wire$i"; done
        ip link del wire
    fi
}

# What mpirun calls in place of ssh: AGENT [OPTION...] HOST COMMAND...
network_agent()
{
    local i
    {
        echo '#!/bin/bash'
        echo 'while [[ $1 == -* ]]; do shift; done'
        echo 'host=$1; shift'
        echo 'case $host in'
        for i in "${!network_pid[@]}"; do echo "host$i) pid=${network_pid[i]} ;;"; done
        echo '*) exit 9 ;;'
        echo 'esac'
        echo 'exec nsenter -t $pid --net --uts --mount -- bash -c "$*"'
    } >"$KEEL_TEST_TMP/agent"
    chmod +x "$KEEL_TEST_TMP/agent"
}

network_mpi()
{
    local mpi=$1 n=$2 i hosts=
    shift 2
    [[ -x $KEEL_TEST_TMP/agent ]] || network_agent
    for ((i = 0; i < n; i++)); do hosts=$hosts${hosts:+,}host$i; done
    if [[ $mpi == openmpi ]]; then
        on 0 env OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=wire OMPI_MCA_oob_tcp_if_include=$network_launchers OMPI_MCA_pml=ob1 \
            OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_plm_rsh_agent="$KEEL_TEST_TMP/agent" OMPI_MCA_plm=rsh OMPI_MCA_ras=^slurm \
            timeout -k 2 "$network_limit" mpirun.openmpi --allow-run-as-root --oversubscribe --host "$hosts" -n "$n" "$@"
    else
        on 0 env UCX_TLS=tcp,self UCX_NET_DEVICES=wire \
            timeout -k 2 "$network_limit" mpiexec.mpich -launcher ssh -launcher-exec "$KEEL_TEST_TMP/agent" -hosts "$hosts" -iface "$network_launchers" -n "$n" "$@"
    fi
}

#!/bin/bash
# cluster.sh FOLDER COMMAND...: start a Slurm of two nodes on this machine, run COMMAND with SLURM_CONF set
# to it, and stop all of it again, whatever happens. FOLDER is new and gets everything: configuration, key,
# sockets, logs. Exit code of COMMAND; 77: Slurm cannot run here, and a line says why.
set -u
folder=$1
shift
mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || exit 2
daemons=()

skip()
{
    echo "skipped: $*"
    exit 77
}

stop() # all that was started, by number, the last first
{
    local i pid
    trap - EXIT
    [[ -n ${SLURM_CONF:-} && -e $folder/ready ]] && timeout 10 scancel --user="$(id -un)" 2>/dev/null
    for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do kill "${daemons[i]}" 2>/dev/null; done
    for pid in "${daemons[@]}"; do
        for ((i = 0; i < 50; i++)); do kill -0 "$pid" 2>/dev/null && sleep 0.1 || break; done
        kill -9 "$pid" 2>/dev/null
    done
    rm -f "$folder/munge/key"
}
trap stop EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
trap 'exit 129' HUP

[[ $(id -u) == 0 ]] || skip "slurmd starts the processes of jobs, for which it must be root"
PATH=$PATH:/usr/sbin:/sbin
for program in slurmctld slurmd munged srun sbatch; do
    command -v $program >/dev/null || skip "there is no $program: sh tools/setup.sh cluster"
done
((${#folder} < 80)) || skip "the path $folder is too long for a socket"

ports() # N: as many free ones
{
    local n=$1 port=20000 used
    used=$(awk 'NR > 1 { split($2, a, ":"); print a[2] }' /proc/net/tcp /proc/net/tcp6 2>/dev/null)
    for ((port += $$ % 10000; n > 0; port++)); do
        grep -qix "$(printf %04X $port)" <<<"$used" || { echo $port; n=$((n - 1)); }
    done
}
read -rd '' control node1 node2 < <(ports 3)

# the daemons refuse folders that others can write, and a key of another owner
chmod 755 "$folder"
mkdir -p "$folder"/{munge,state,{spool,tmp}-node{1,2},log}
chmod 755 "$folder/munge"
head -c 1024 /dev/urandom >"$folder/munge/key"
chmod 400 "$folder/munge/key"
host=$(hostname -s)
cat >"$folder/slurm.conf" <<END
ClusterName=keel
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$control
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
TmpFS=$folder/tmp-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1
MpiDefault=none
ReturnToService=2
KillWait=30
MinJobAge=3600
SlurmdTimeout=30
JobRequeue=1
SlurmdParameters=config_overrides
NodeName=node[1-2] NodeAddr=127.0.0.1 NodeHostname=$host Port=[$node1,$node2] CPUs=4 State=UNKNOWN
PartitionName=all Nodes=node[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
END
export SLURM_CONF=$folder/slurm.conf

begin() # NAME COMMAND...: a daemon in the foreground, so that its number is known
{
    local name=$1
    shift
    "$@" >"$folder/log/$name.out" 2>&1 &
    daemons+=($!)
    disown $! # the shell says nothing of its end
}
fail()
{
    echo "error: $*"
    tail -n 15 "$folder"/log/* | head -c 6000
    exit 1
}

begin munged munged --foreground --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
    --pid-file="$folder/munge/pid" --log-file="$folder/log/munge" --seed-file="$folder/munge/seed" --num-threads=2
for ((i = 0; i < 50; i++)); do [[ -S $folder/munge/socket ]] && break; sleep 0.1; done
[[ -S $folder/munge/socket ]] || fail "munged did not start"
begin slurmctld slurmctld -D -c -f "$SLURM_CONF"
begin slurmd1 slurmd -D -N node1 -f "$SLURM_CONF"
begin slurmd2 slurmd -D -N node2 -f "$SLURM_CONF"
for ((i = 0; i < 150; i++)); do
    [[ $(sinfo -h -t idle -o %D 2>/dev/null) == 2 ]] && break
    sleep 0.2
done
[[ $(sinfo -h -t idle -o %D 2>/dev/null) == 2 ]] || fail "the nodes did not become idle: $(sinfo 2>&1)"
touch "$folder/ready"
"$@"
exit $?

#!/bin/bash
# keel fit on two machines with a network between them that is slow, loses packets, or is cut: machines are
# namespaces (network.sh), under each MPI. A lossy network gives the bits of one process. Where it is cut,
# every process ends soon after --timeout, and the weights of a whole step are saved. A full disk of one
# machine ends all or none.
set -u
. "$(dirname "$0")/network.sh"
network_enter "$0" "$@"
cd "$KEEL_TEST_TMP" || exit 2
export TMPDIR=$KEEL_TEST_TMP
DATA='synthetic(x=float32(20),y=int(5),rows=32)' TIMEOUT_S=3 # one step an epoch
fit=(fit "$PWD/m.keras" --data "$DATA" --batch-size 32 --seed 7 --reproducible --devices cpu:0 --timeout $TIMEOUT_S)
alone=(fit "$PWD/m.keras" --data "$DATA" --batch-size 32 --seed 7 --reproducible --devices cpu:0)
failed=0

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}

predicts() # FILE OUT
{
    "$KEEL" predict "$1" --data "$DATA" --devices cpu:0 --reproducible -o "$2" >/dev/null || fail "keel predict $1"
}

found=
for mpi in openmpi mpich; do
    launcher=mpirun.openmpi
    [[ $mpi == openmpi ]] || launcher=mpiexec.mpich
    [[ -e $KEEL_BUILD/libkeel_mpi_$mpi.so ]] && command -v $launcher >/dev/null && found="$found $mpi"
done
[[ $found ]] || { echo "no launcher of an MPI was found"; exit 77; }
"$KEEL" new mlp --input 20 --classes 5 --sizes 200,200 -o m.keras >/dev/null || fail "keel new mlp"
"$KEEL" "${alone[@]}" --epochs 9 -o one.keras >/dev/null || fail "keel fit alone"
predicts one.keras one.npy
network_hosts 2

# ---- what MPI promises, by TCP ------------------------------------------------------------------
network_bridge
for mpi in $found; do
    for what in a_long_message_moves_while_its_receiver_computes exchanges_in_any_order; do
        network_mpi $mpi 2 "$KEEL_BUILD/tests/mpi_exchange" "$KEEL_BUILD/libkeel_mpi_$mpi.so" $what >out.txt 2>err.txt ||
            fail "$mpi: $what: $(head -c 600 err.txt)"
    done
done
network_gone

# ---- slow and lossy -----------------------------------------------------------------------------
network_wire 500 0.01 1gbit
for mpi in $found; do
    network_mpi $mpi 2 "$KEEL" "${fit[@]}" --epochs 9 -o $mpi.keras >out.txt 2>err.txt || fail "$mpi: $(head -c 600 err.txt)"
    grep -q '2 processes on 2 machines' out.txt || fail "$mpi: not two machines: $(head -c 300 out.txt)"
    predicts $mpi.keras $mpi.npy
    cmp -s one.npy $mpi.npy || fail "$mpi: one process and two on a lossy network learned other weights"
done
network_gone >passed.txt
read -r packets bytes lost _ <passed.txt
((lost > 0 && bytes > 9 * 80000)) || fail "the network lost nothing, or was not used: $(cat passed.txt)"
echo "$packets packets, $lost lost"

# ---- cut ----------------------------------------------------------------------------------------
cut_one() # MPI
{
    local mpi=$1 epoch step begin took file="$1.cut.interrupted.keras"
    network_mpi "$mpi" 2 "$KEEL" "${fit[@]}" --epochs 100000 -o "$mpi.cut.keras" >out.txt 2>err.txt &
    launcher=$!
    for ((i = 0; i < 100; i++)); do
        (($(grep -c '^epoch' out.txt) >= 3)) && break
        sleep 0.1
    done
    network_cut
    begin=$(date +%s%N)
    wait $launcher
    code=$?
    took=$((($(date +%s%N) - begin) / 1000000))
    echo "$mpi: all end $took ms after the cut"
    network_mend
    ((code == 1)) || fail "$mpi: exit code $code, not 1: $(head -c 900 err.txt)"
    # Open MPI gives each process a second or more to end, once the first has; 10 s at a load of 30
    ((took < TIMEOUT_S * 1000 + 12000)) || fail "$mpi: all end $took ms after the cut"
    grep -qE '^(rank 1 \(host1\): )?keel fit: .*process [01] \(host[01]\) has not answered for' err.txt || fail "$mpi: no host is named: $(head -c 900 err.txt)"
    read -r step epoch < <(sed -nE 's/^(rank 1 \(host1\): )?keel fit: .*the model after step ([0-9]+) of epoch ([0-9]+) is saved as .*/\2 \3/p' err.txt)
    [[ $epoch && -s $file ]] || { fail "$mpi: nothing is saved: $(head -c 900 err.txt)"; return; }
    "$KEEL" "${alone[@]}" --epochs "$epoch" -o ref.keras >/dev/null || fail "keel fit alone, $epoch epochs"
    predicts ref.keras ref.npy
    predicts "$file" cut.npy
    cmp -s ref.npy cut.npy || fail "$mpi: what is saved is not step $step of epoch $epoch"
}

network_wire 500 0 1gbit
for mpi in $found; do
    network_mpi $mpi 2 "$KEEL" network >out.txt 2>err.txt || fail "$mpi: keel network: $(head -c 600 err.txt)"
    # Mbit and us; a packet needs a core of the forwarder, so the rate may be much less than 1 Gbit/s, and
    # a bucket that has filled up lets a few more through
    read -r rate delay < <(sed -nE 's/^([0-9.]+)(G|M)bit,([0-9.]+)us,eager=[0-9]+K,own=[0-9.]+GB$/\1 \2 \3/p' out.txt | awk '{ print $1 * ($2 == "G" ? 1000 : 1), $3 }')
    awk "BEGIN { exit !(${rate:-0} > 1 && ${rate:-0} < 2000 && ${delay:-0} > 450 && ${delay:-0} < 20000) }" ||
        fail "$mpi: keel network on 1 Gbit/s with 500 us says $(head -c 300 out.txt)"
done
for mpi in $found; do cut_one $mpi; done

# ---- a full disk --------------------------------------------------------------------------------
mkdir disk
full() # MPI HOST CODE ARGUMENT...: the folder disk of a machine takes 64 KiB
{
    local mpi=$1 host=$2 want=$3 code
    shift 3
    on "$host" mount -t tmpfs -o size=64k tmpfs "$PWD/disk"
    network_mpi "$mpi" 2 "$KEEL" "${fit[@]}" --epochs 9 "$@" >out.txt 2>err.txt
    code=$?
    on "$host" umount "$PWD/disk"
    # MPICH's launcher may lose the code where a process ends while another meets it
    ((want && code == 255)) && [[ $mpi == mpich ]] && grep -q HYDU_sock_write err.txt && code=$want
    ((code == want)) || fail "$mpi: a full disk of host$host: exit code $code: $(head -c 600 err.txt)"
    if ((host == 0)); then # the one that writes
        grep -q '^keel fit: .*No space left' err.txt || fail "$mpi: a full disk is not named: $(head -c 600 err.txt)"
    elif grep -q keel err.txt; then # the launcher may warn of something
        fail "$mpi: a full disk of a machine that writes nothing: $(head -c 600 err.txt)"
    fi
}
for mpi in $found; do
    full "$mpi" 0 1 -o "$PWD/disk/full.keras"
    for host in 0 1; do # checkpoints are not worth a fit
        full "$mpi" $host 0 -o full.keras --checkpoint "$PWD/disk" --checkpoint-every 1
        predicts full.keras full.npy
        cmp -s one.npy full.npy || fail "$mpi: a full disk of host$host changes the weights"
        rm -rf full.keras disk/*
    done
done
network_gone >/dev/null
((failed == 0)) || { echo "$failed failed"; exit 1; }
echo "two machines:$found"

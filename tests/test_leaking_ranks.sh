#!/bin/bash
# A leak in any process of keel is found under each MPI: tools/check.sh looks for them with AddressSanitizer,
# and lets pass what the MPIs lose (tests/mpi/lsan.supp). tests/mpi/faulty.c leaks. A process ends in one of
# four ways: the first or another one, apart or as one with the first. The MPIs share these among them,
# since a launch takes seconds on a busy machine.
set -u
cd "$KEEL_TEST_TMP" || exit 2
grep -qa __asan_init "$KEEL" || { echo "keel has no AddressSanitizer"; exit 77; }
export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none TMPDIR=$KEEL_TEST_TMP
failed=0

launch() # MPI DEVICES
{
    local words=(bare/keel evaluate m.keras --data 'synthetic(x=float32(4),y=int(3),rows=32)' --devices "$2")
    export KEEL_FAULTY_PLUGIN=$KEEL_BUILD/libkeel_mpi_$1.so LD_LIBRARY_PATH=bare
    if [[ $1 == openmpi ]]; then
        timeout -k 5 60 mpirun.openmpi $( (($(id -u))) || echo --allow-run-as-root) --oversubscribe -n 2 "${words[@]}"
    else
        timeout -k 5 60 mpiexec.mpich -n 2 "${words[@]}"
    fi >out.txt 2>err.txt
}

LD_PRELOAD= "$KEEL" new mlp --input 4 --classes 3 --sizes 8 -o m.keras >/dev/null || exit 2
mkdir bare
cp -L "$KEEL" "$KEEL_BUILD"/libkeel.so.0 bare
found=
for mpi in openmpi mpich; do
    launcher=mpirun.openmpi
    [[ $mpi == openmpi ]] || launcher=mpiexec.mpich
    [[ -e $KEEL_BUILD/libkeel_mpi_$mpi.so ]] && command -v $launcher >/dev/null || continue
    found="$found $mpi"
    cp "$KEEL_BUILD/tests/libkeel_mpi_faulty.so" "bare/libkeel_mpi_$mpi.so"
    unset KEEL_FAULTY
    launch $mpi cpu || { echo "error: $mpi, no leak: exit code $?: $(head -c 900 err.txt)"; failed=1; }
    ways="cpu:0/0 cpu/1" # devices (apart, and as one), and who leaks
    [[ $mpi == openmpi ]] || ways="cpu:0/1 cpu/0"
    for way in $ways; do
        devices=${way%/*} rank=${way#*/}
        KEEL_FAULTY="$rank leak 2" launch $mpi "$devices" && { echo "error: $mpi, $devices: a leak of process $rank is a success"; failed=1; }
        # the other process has no leak: it would say so too
        [[ $(grep -ac '^SUMMARY: ' err.txt) == 1 ]] && grep -qa '1234 byte(s) leaked in 1 allocation' err.txt ||
            { echo "error: $mpi, $devices, process $rank: $(head -c 900 err.txt)"; failed=1; }
    done
done
[[ $found ]] || { echo "no launcher of an MPI was found"; exit 77; }
exit $failed

#!/bin/sh
# setup.sh [check|keras|cluster]: install the Debian packages that the build needs and lacks; with `check` also
# those of `make check`, with `keras` those of `make check-keras`, with `cluster` those of
# `make check-cluster`. Says what it installs; with nothing to do it is silent and quick.
set -eu
packages='gcc libc6-dev cmake ninja-build pkg-config libdnnl-dev libhdf5-dev libjansson-dev
    libjpeg62-turbo-dev libspng-dev libwebp-dev libgif-dev zlib1g-dev librandom123-dev libhwloc-dev libxxhash-dev libcmocka-dev'
if [ "${1:-}" = check ]; then
    # clang only recommends its run-time libraries, so they are named
    # g++ for the kernels for CUDA on their emulator
    # both MPIs, each with its launcher, which the build takes up where it finds them
    packages="$packages g++ clang-14 clang-format libclang-rt-14-dev libopenmpi-dev openmpi-bin libmpich-dev mpich"
    packages="$packages iproute2 util-linux" # machines made of namespaces
    packages="$packages python3-numpy" # for the package for Python
elif [ "${1:-}" = keras ]; then
    packages="$packages python3-venv"
elif [ "${1:-}" = cluster ]; then
    # Slurm and what it authenticates by; Debian starts their services, which the check does not use
    packages="$packages libopenmpi-dev openmpi-bin libmpich-dev mpich slurmctld slurmd slurm-client munge"
fi
command -v dpkg-query >/dev/null 2>&1 || exit 0 # not Debian: CMake names what is missing

missing=
installed=$(dpkg-query -W -f '${Status} ${Package}\n' $packages 2>/dev/null | sed -n 's/^install ok installed //p') || true
for p in $packages; do
    echo "$installed" | grep -qx "$p" || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

echo "setup: installing Debian packages:$missing"
sudo=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || {
        echo "setup: not root and no sudo: run as root: apt-get install --no-install-recommends$missing" >&2
        exit 1
    }
    sudo=sudo
fi
# a list of some other archive that cannot be had must not stop us
$sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq || echo "setup: going on with the lists at hand"
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
echo "setup: done"

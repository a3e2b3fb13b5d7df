#!/bin/bash
# test_untuned.sh: keel fit on a kind of processor of which no kernels were measured says so once, and never on
# one that the table knows.
set -u
failed=0
cd "$KEEL_TEST_TMP" || exit 2
export HOME=$PWD/home
unset XDG_CACHE_HOME
mkdir home
"$KEEL" new mlp --input 8 --classes 2 -o m.keras >/dev/null || exit 1
said() # NAME=VALUE...: how often a fit says it there
{
    env "$@" "$KEEL" fit m.keras --data "synthetic(x=float32(8),y=int(2),rows=64)" --batch-size 32 --epochs 1 -o o.keras 2>&1 | grep -c "'make tune'"
}
check() # COUNT WHAT NAME=VALUE...
{
    local want=$1 what=$2 got
    shift 2
    got=$(said "$@")
    [[ $got == "$want" ]] || { echo "error: $what: said $got times, not $want"; failed=1; }
}
check 1 "the first fit with AVX2" KEEL_CPU=avx2
check 0 "the second one" KEEL_CPU=avx2
check 1 "the first fit with base instructions" KEEL_CPU=base
check 1 "the first fit with another cache folder" KEEL_CPU=avx2 XDG_CACHE_HOME="$PWD/deep/cache"
check 0 "the second one there" KEEL_CPU=avx2 XDG_CACHE_HOME="$PWD/deep/cache"
check 0 "without a folder that remembers" KEEL_CPU=avx2 HOME=/proc/none
known=$("$KEEL" --version | grep -oE 'avx512_bf16|amx' | head -n 1)
[[ $known ]] && check 0 "on a processor of the table" KEEL_CPU="$known"
((failed == 0)) || exit 1

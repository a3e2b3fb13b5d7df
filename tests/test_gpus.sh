#!/bin/bash
# GPUs on a machine without any: each step of the refusal has its own sentence, and `keel devices` lists what
# a stand-in for NVML shows, as CUDA_VISIBLE_DEVICES says. Copies of the command and of the library lie in a
# folder of their own, so that a plug-in of another build, or none, can lie beside them.
set -u
cd "$KEEL_TEST_TMP" || exit 2
failed=0

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}

mkdir -p own driver stub
cp -L "$KEEL_BUILD/keel" own/ && cp -L "$KEEL_BUILD/libkeel.so.0" own/ || exit 2
"$KEEL_BUILD/keel" new mlp --input 8 --classes 2 -o m.keras >/dev/null || exit 2
with=$PWD/own

# refused STATUS "WORDS" DEVICES [FOLDER...]: the folders come before those of the system.
refused()
{
    local status=$1 words=$2 devices=$3 path=$with got
    shift 3
    for folder in "$@"; do path=$PWD/$folder:$path; done
    got=$(LD_LIBRARY_PATH=$path own/keel plan m.keras --rows 8 --batch-size 4 --devices "$devices" 2>&1)
    [[ $? == "$status" ]] || fail "$devices with $path: another status than $status: $got"
    [[ $got == *"devices '$devices': "*"$words"* ]] || fail "$devices with $path: '$words' is not in: $got"
}

library() # library FOLDER/NAME: from standard input
{
    cc -shared -fPIC -o "$1" -x c - || exit 2
}

# what is wrong with the text
refused 2 "a number is missing after 'cuda:'" cuda:x
refused 2 "a number is missing after 'cuda:'" cuda:
refused 2 "a range is written cuda:0-3" cuda:2-1
refused 2 "a GPU is named twice" cuda:0-2,cuda:1
refused 2 "and cores behind them cpu:0-1" cuda:0,gpu:0
refused 2 "name GPUs before cores: cuda:0-1,cpu:0-1" cpu:0,cuda:0
refused 2 "name GPUs before cores: cuda:0-1,cpu:0-1" cuda:0,cpu:0,cuda:1
refused 2 "name GPUs before cores: cuda:0-1,cpu:0-1" cuda,cpu:0,cuda:1
refused 2 "more than 64 devices" cuda:0-64
refused 2 "more than 64 devices" cuda:0-31x3
refused 2 "a GPU is divided by cuda:0x4" cuda:0x
refused 2 "a GPU is divided by cuda:0x4" cuda:0x0
refused 2 "GPUs are separated by commas" cuda:0x2x2

# what is missing
if ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
    refused 1 "this machine has no driver for NVIDIA GPUs (libcuda.so.1)" cuda:0
fi
echo 'int unused;' | library driver/libcuda.so.1
refused 1 "the plug-in for GPUs is missing: no libkeel_cuda.so in $PWD/own" cuda:0 driver
echo 'int unused;' | library own/libkeel_cuda.so
refused 1 "libkeel_cuda.so is of another build of Keel (?, interface 0; this one is" cuda:0 driver
echo 'struct { int abi; const char *version; } keel_cuda = { 99, "9.9" };' | library own/libkeel_cuda.so
refused 1 "libkeel_cuda.so is of another build of Keel (9.9, interface 99; this one is" cuda:0 driver
echo 'extern int none(void); int (*keel_cuda)(void) = none;' | library own/libkeel_cuda.so
refused 1 "the plug-in for GPUs cannot be loaded: " cuda:0 driver
rm own/libkeel_cuda.so
if [[ -f $KEEL_BUILD/libkeel_cuda.so ]]; then
    cp "$KEEL_BUILD/libkeel_cuda.so" own/
    refused 1 "the driver for NVIDIA GPUs does not answer" cuda:0 driver
    refused 1 "the driver for NVIDIA GPUs does not answer" cuda driver
    for stubs in /usr/local/cuda/lib64/stubs /usr/lib/x86_64-linux-gnu/stubs; do
        [[ -f $stubs/libcuda.so ]] || continue
        ln -sf "$stubs/libcuda.so" stub/libcuda.so.1
        refused 1 "libcuda.so.1 is the stub for linking, not a driver" cuda stub
        break
    done
fi

# the list
library driver/libnvidia-ml.so.1 <<'EOF'
#include <stdio.h>
#include <string.h>
typedef struct gpu { int number; } *device;
static struct gpu gpus[3] = { { 0 }, { 1 }, { 2 } };
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *out) { *out = &gpus[i]; return i < 3 ? 0 : 2; }
int nvmlDeviceGetName(device d, char *out, unsigned n) { snprintf(out, n, "GPU number %d", d->number); return 0; }
int nvmlDeviceGetUUID(device d, char *out, unsigned n) { snprintf(out, n, "GPU-%dabc", d->number); return 0; }
int nvmlDeviceGetMemoryInfo(device d, unsigned long long *m) { m[0] = (80ull + d->number) << 30; return d->number == 1 ? 3 : 0; }
EOF

listed() # listed "VISIBLE" "LINES": of GPUs; - unset
{
    local got
    got=$(export LD_LIBRARY_PATH=$PWD/driver:$with
        [[ $1 == - ]] && unset CUDA_VISIBLE_DEVICES || export CUDA_VISIBLE_DEVICES=$1
        own/keel devices | grep '^cuda' | tr -s ' ' | paste -sd ';')
    [[ $got == "$2" ]] || fail "CUDA_VISIBLE_DEVICES=$1 lists '$got', not '$2'"
}

listed - "cuda:0 GPU number 0, 80.0 GiB;cuda:1 GPU number 1, memory unknown;cuda:2 GPU number 2, 82.0 GiB"
listed "" ""
listed 2,0 "cuda:0 GPU number 2, 82.0 GiB;cuda:1 GPU number 0, 80.0 GiB"
listed 0,7,2 "cuda:0 GPU number 0, 80.0 GiB"
listed GPU-2,GPU-0ab "cuda:0 GPU number 2, 82.0 GiB;cuda:1 GPU number 0, 80.0 GiB"
listed -1 ""

# cores train though there are GPUs
printf 'a,b,c,d,e,f,g,h,y\n%s\n%s\n' 1,2,3,4,5,6,7,8,0 8,7,6,5,4,3,2,1,1 >rows.csv
told() # told COUNT "WORDS" [OPTION...]: so many lines of a fit have the words
{
    local count=$1 words=$2 got
    shift 2
    got=$(LD_LIBRARY_PATH=$PWD/driver:$with own/keel fit m.keras --data rows.csv --label y --epochs 1 -o out.keras "$@" |
        grep -cF "$words")
    [[ $got == "$count" ]] || fail "fit $*: '$words' in $got lines, not in $count"
}
unset CUDA_VISIBLE_DEVICES
told 1 'devices  3 GPUs (GPU number 0) are not used, since no devices were named: "cuda" names them'
told 0 'not used' --devices cpu
CUDA_VISIBLE_DEVICES='' told 0 'not used'

((failed == 0)) && echo "what is refused of GPUs says what is missing"
exit $((failed > 0))

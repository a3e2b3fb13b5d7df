#!/bin/bash
# check_keras.sh KEEL [MODEL...]: Keel against the real Keras, by `make check-keras`: models that go
# back and forth between both (tests/interop/with_keras.py), and one model of each family of
# keras.applications, or those named (tests/interop/applications.py); for the name `none` no such
# model. Keras comes from PyPI, pinned, into BUILD/keras, once; KERAS_PYTHON=path/to/python takes
# another one. The last line is 'N passed, N failed'. Without a network to PyPI it says so in one line
# and exits with 77: nothing was compared.
set -u
keel=$1
shift
cd "$(dirname "$0")/.." || exit 2
here=${BUILD:-build}/keras
families=MobileNet,MobileNetV2,MobileNetV3Small,EfficientNetB0,EfficientNetV2B0,ConvNeXtTiny
families+=,DenseNet121,NASNetMobile,ResNet50,ResNet50V2,Xception,InceptionV3,InceptionResNetV2,VGG16
models=$(IFS=,; echo "${*:-$families}")
# TensorFlow for processors alone is the backend that the golden numbers were made with, and the only
# one on which Keras takes texts. JAX is as large, and compiles these small models more slowly.
pins='keras==3.15.1 tensorflow-cpu==2.21.0 numpy==2.4.6 h5py==3.14.0'
log=$(mktemp)
trap 'rm -f "$log"' EXIT

python=${KERAS_PYTHON:-$here/bin/python}
if [ ! -x "$python" ]; then
    python3 -c 'import ensurepip, venv' 2>/dev/null || sh tools/setup.sh keras
    echo "check-keras: fetching Keras and TensorFlow from PyPI into $here"
    rm -rf "$here.part"
    if ! { python3 -m venv "$here.part" &&
        "$here.part/bin/pip" install --quiet --retries 2 --timeout 15 $pins; } >"$log" 2>&1; then
        rm -rf "$here.part"
        if grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeout|Network is unreachable' "$log"; then
            echo "check-keras: skipped: PyPI cannot be reached, and there is no $here" >&2
            exit 77
        fi
        tail -n 20 "$log" >&2
        echo "check-keras: no environment; python3-venv and PyPI are needed, or KERAS_PYTHON" >&2
        exit 1
    fi
    mv "$here.part" "$here" # its python works there, too
fi
export KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
passed=0 failed=0
against() # SCRIPT ARGUMENT...: run it and add what its last line counts
{
    local p f
    "$python" "$@" | tee "$log"
    read -r p _ f _ < <(tail -n 1 "$log")
    [[ $p =~ ^[0-9]+$ ]] || p=0 f=1
    passed=$((passed + p)) failed=$((failed + f))
}
against tests/interop/with_keras.py "$keel"
[ "$models" = none ] || against tests/interop/applications.py --keel "$keel" --only "$models"
echo "$passed passed, $failed failed"
[ $failed = 0 ]

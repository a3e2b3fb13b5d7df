#!/bin/bash
# check_keras.sh KEEL [MODEL...]: Keel against the real Keras, by `make check-keras`: models that go
# back and forth between both (tests/interop/with_keras.py), graphs drawn by chance
# (random_graphs.py), layers, optimizers, losses and callbacks with arguments drawn by chance
# (random_arguments.py, random_trainings.py), whole fits of drawn models, files and callbacks
# (random_fits.py), fits by the package for Python (python_*.py), and one model of each family of
# keras.applications, or those named (applications.py). For the name `some`: no such model, no deep
# network that goes back and forth, and every third layer and operation. GRAPHS='SEED COUNT' draws other
# graphs, or more, ARGUMENTS='SEED SETS' other arguments, FITS='SEED COUNT' other fits. Keras comes from
# PyPI, pinned, into BUILD/keras, once; KERAS_PYTHON=path/to/python takes another one. Each part says how
# long it took. The last line is 'N passed, N failed'. Without a network to PyPI it says so in one line
# and exits with 77: nothing was compared.
set -u
keel=$1
shift
cd "$(dirname "$0")/.." || exit 2
here=${BUILD:-build}/keras
families=MobileNet,MobileNetV2,MobileNetV3Small,EfficientNetB0,EfficientNetV2B0,ConvNeXtTiny
families+=,DenseNet121,NASNetMobile,ResNet50,ResNet50V2,Xception,InceptionV3,InceptionResNetV2,VGG16
models=$(IFS=,; echo "${*:-$families}")
read -r seed count <<<"${GRAPHS:-40 20}"
read -r drawn sets <<<"${ARGUMENTS:-1 1}"
read -r fit fits <<<"${FITS:-1 8}"
[ "$models" = some ] && deep=--no-deep every=3 || deep='' every=1
# TensorFlow for processors alone is the backend that the golden numbers were made with, and the only
# one on which Keras takes texts. JAX is as large, and compiles these small models more slowly. Keras
# asks for scipy where a model has a window of the short-time Fourier transform.
pins='keras==3.15.1 tensorflow-cpu==2.21.0 numpy==2.4.6 h5py==3.14.0 scipy==1.17.1'
log=$(mktemp) logs=$(mktemp -d)
trap 'rm -rf "$log" "$logs"' EXIT

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
# Without oneDNN, which TensorFlow leaves out on some processors, it has no convolution of channels_first.
export TF_ENABLE_ONEDNN_OPTS=1 KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
# Most of the time is TensorFlow's tracing, on one core, so parts run two at a time.
against() # WHAT SCRIPT ARGUMENT...: run it; what it says is shown when it ends, and counted later
{
    local what=$1 begin=$SECONDS out=$logs/$1 p f
    shift
    timeout -k 10 3600 "$python" "$@" >"$out" # one that hangs is a failure
    read -r p _ f _ < <(tail -n 1 "$out")
    [[ $p =~ ^[0-9]+$ ]] || p=0 f=1
    echo "$p $f" >"$out.count"
    {
        flock 9
        sed '/^[0-9]* passed, [0-9]* failed$/d' "$out"
        printf '%-28s %5d passed, %d failed %5d s\n' "$what" "$p" "$f" $((SECONDS - begin))
    } 9>"$logs/lock"
}
against 'back and forth' tests/interop/with_keras.py "$keel" $deep &
against 'layers and operations' tests/interop/cases.py "$keel" "${keel%/*}/tests/cases" --every $every
against 'random graphs' tests/interop/random_graphs.py "$keel" "${keel%/*}/tests/random_graphs" \
    --seed "$seed" --count "$count"
against 'random arguments' tests/interop/random_arguments.py "$keel" --seed "$drawn" --sets "$sets"
against 'random trainings' tests/interop/random_trainings.py "$keel" --seed "$drawn" --sets "$sets"
against 'random fits' tests/interop/random_fits.py "$keel" --seed "$fit" --fits "$fits"
export KEEL_LIBRARY=${keel%/*}/libkeel.so.0
against 'package for Python' tests/interop/python_package.py
against 'classes of the caller' tests/interop/python_classes.py
against 'calls of the caller' tests/interop/python_calls.py
against 'weights of the caller' tests/interop/python_weights.py
against 'losses of the caller' tests/interop/python_losses.py
against 'metrics that Keras computes' tests/interop/python_metrics.py
against 'steps of the caller' tests/interop/python_steps.py
against 'rows that are compared' tests/interop/python_whole.py
against 'several processes' tests/interop/python_processes.py
wait
[ "$models" = some ] || against keras.applications tests/interop/applications.py --keel "$keel" --only "$models"
read -r passed failed < <(cat "$logs"/*.count | awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }')
echo "$passed passed, $failed failed"
[ $failed = 0 ]

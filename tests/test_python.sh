#!/bin/bash
# The Python package: its structs are those of the headers, it gives the bits of the command, and is found
# where it is installed. tests/interop/python_package.py compares it with Keras.
set -u
for python in python3 /usr/bin/python3; do
    "$python" -c 'import numpy' 2>/dev/null && break
    python=
done
[ "$python" ] || { echo "SKIPPED: no python3 with NumPy"; exit 77; }
root=$(cd .. && pwd)
"$KEEL" new mlp --input 6 --classes 3 --sizes 8 -o "$KEEL_TEST_TMP/m.keras" >/dev/null || exit 1
export KEEL_LIBRARY=$KEEL_BUILD/libkeel.so.0 PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=$root/python "$python" python_alone.py "$root/include" "$KEEL_TEST_TMP" "$KEEL" || exit 1

cmake --install "$KEEL_BUILD" --prefix "$KEEL_TEST_TMP/usr" >/dev/null || exit 1
package=$(find "$KEEL_TEST_TMP/usr" -path '*/keel/python')
unset KEEL_LIBRARY
cd /
PYTHONPATH=$package "$python" -c "
import keel
assert keel._library.lib._name.startswith('$KEEL_TEST_TMP/usr'), keel._library.lib
assert 'cpu:0' in keel.devices()" || exit 1
KEEL_LIBRARY=/nowhere.so PYTHONPATH=$package "$python" -c 'import keel' 2>&1 | grep -q 'ImportError: keel: .*/nowhere.so' || {
    echo "error: no word of the library that is not there"
    exit 1
}

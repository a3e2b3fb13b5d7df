#!/bin/bash
# Each program of examples/ runs without arguments in an empty folder and succeeds. They run in one
# folder, those that train first, so that others may read what they saved.
set -eu
here=$PWD
cd "$KEEL_TEST_TMP"
shopt -s nullglob
count=0
for source in "$here"/../examples/train_*.c "$here"/../examples/[!t]*.c; do
    name=$(basename "$source" .c)
    echo "== $name"
    "$KEEL_BUILD/examples/$name"
    count=$((count + 1))
done
[ $count -gt 0 ] || { echo "no examples yet"; exit 77; }

#!/bin/bash
# Each program of examples/ runs without arguments in an empty folder and succeeds. They run in the
# order of their names in one folder, so that one may read what an earlier one saved.
set -eu
here=$PWD
cd "$KEEL_TEST_TMP"
shopt -s nullglob
count=0
for source in "$here"/../examples/*.c; do
    name=$(basename "$source" .c)
    echo "== $name"
    "$KEEL_BUILD/examples/$name"
    count=$((count + 1))
done
[ $count -gt 0 ] || { echo "no examples yet"; exit 77; }

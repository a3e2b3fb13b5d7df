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

echo "== train_custom as a plug-in"
cc -shared -fPIC -I"$here/../include" "$here/../examples/train_custom.c" -o my.so -L"$KEEL_BUILD" -lkeel -lm
if "$KEEL_BUILD/keel" inspect quantile.keras 2>without; then
    echo "a class was known without the plug-in"
    exit 1
fi
grep -q "'my>RadialBases'.*keel_register_layer" without
"$KEEL_BUILD/keel" inspect quantile.keras --plugin my.so | grep RadialBases
printf 'a,b,y\n0.1,0.2,0.5\n-0.3,0.4,0.1\n0.7,-0.8,0.9\n' >rows.csv
"$KEEL_BUILD/keel" fit quantile.keras --plugin ./my.so --data rows.csv --label y --batch-size 2 -o again.keras
"$KEEL_BUILD/keel" evaluate again.keras --plugin my.so --data rows.csv --label y | grep covered
[ $count -gt 0 ] || { echo "no examples yet"; exit 77; }

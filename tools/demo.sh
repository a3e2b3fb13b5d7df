#!/bin/bash
# demo.sh: by `make demo`. Draws 1,031 images of ten shapes, trains a small CNN on them over four logical
# devices, evaluates it on images it has not seen, predicts, and ends with a report. KEEL is the command.
set -eu -o pipefail
keel=${KEEL:?name the command: KEEL=build/keel}
work=$(dirname "$keel")/demo
rm -rf "$work" && mkdir -p "$work"
begin=$SECONDS

say() # what is run, as one would type it
{
    { printf '\n$ keel %s\n' "$*" && "$keel" "$@"; } | sed -u "s|$work/||g"
}

echo "drawing 1,031 images to train on and 307 others, in $work"
"$(dirname "$keel")/make_shapes" "$work/shapes" 1031 1 >/dev/null
"$(dirname "$keel")/make_shapes" "$work/held-out" 307 2 >/dev/null
say new cnn --input 48,48,3 --classes 10 -o "$work/new.keras"
say fit "$work/new.keras" --data "$work/shapes" --batch-size 64 --epochs 15 --seed 1 \
    --learning-rate 0.003 --devices cpu:0-3 -o demo.keras | tee "$work/fit.txt"
say evaluate demo.keras --data "$work/held-out" | tee "$work/evaluate.txt"
say predict demo.keras --data "$work/held-out" -o "$work/out.npy" --show 3

accuracy=$(awk '$1 == "accuracy" { print $2 }' "$work/evaluate.txt")
rows=$(awk '$1 == "rows" { print $2 }' "$work/evaluate.txt")
printf '\nThe demo in short\n'
printf 'accuracy %s on %s images it has not seen\n' "$accuracy" "$rows"
grep -E '^(devices|split|memory|time) ' "$work/fit.txt"
printf 'model    demo.keras, which keras.models.load_model reads\n'
printf 'all      %d s\n' $((SECONDS - begin))
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.9) }' || { echo "demo: the accuracy should be above 0.9" >&2; exit 1; }

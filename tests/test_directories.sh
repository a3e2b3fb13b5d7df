#!/bin/bash
# keel fit, evaluate and predict on directories of images, sounds and texts, with the options of
# directories; and what is refused before step 1.
set -u
here=$PWD
cd "$KEEL_TEST_TMP" || exit 2
failed=0

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}

# want CODE PATTERN ARGUMENT...: run keel, compare the exit code, look for PATTERN in what it printed.
want()
{
    local code=$1 pattern=$2 got
    shift 2
    "$KEEL" "$@" >out.txt 2>err.txt
    got=$?
    ((got == code)) || fail "keel $*: exit code $got, not $code: $(head -c 300 err.txt)"
    grep -qE -e "$pattern" out.txt err.txt || fail "keel $*: nothing like '$pattern' in: $(head -c 300 out.txt err.txt)"
    ((code == 0)) || [[ $(wc -l <err.txt) == 1 ]] || fail "keel $*: the error is not one line: $(head -c 600 err.txt)"
}

le() # NUMBER BYTES: little-endian, as escapes of printf
{
    local i
    for ((i = 0; i < $2; i++)); do printf '\\x%02x' $(($1 >> (8 * i) & 255)); done
}

wav() # FILE FRAMES STEP: 8-bit samples, a saw of a step for each frame
{
    local i one body=
    for ((i = 0; i < $2; i++)); do
        printf -v one '\\x%02x' $((i * $3 % 256))
        body+=$one
    done
    printf "RIFF$(le $((36 + $2)) 4)WAVEfmt $(le 16 4)$(le 1 2)$(le 1 2)$(le 8000 4)$(le 8000 4)$(le 1 2)$(le 8 2)data$(le "$2" 4)$body" >"$1"
}

# ---- sounds -------------------------------------------------------------------------------------
mkdir -p sounds/slow sounds/fast
for i in 0 1 2 3 4 5; do
    wav sounds/slow/$i.wav 128 $((1 + i))
    wav sounds/fast/$i.WAV 128 $((90 + i))
done
want 0 '' new conv1d --input 128,1 --classes 2 -o sound.keras
want 0 'classes in this order, .* 0 fast, 1 slow' fit sound.keras --data sounds --batch-size 4 --epochs 1 --devices cpu:0 -o s.keras
want 0 '^rows +12 ' evaluate s.keras --data audio:sounds
want 0 '^rows +12 ' evaluate s.keras --data sounds --audio-length 128 --sampling-rate 8000
want 0 'out.npy: 6 x 2 ' predict s.keras --data sounds/slow -o out.npy --show 1
want 0 '^sounds/slow/[^/]*: ' predict s.keras --data sounds/slow/ -o out.npy --show 1
wav sounds/slow/9.wav 40 3 # shorter: padded to the model's length
want 0 '^rows +13 ' evaluate s.keras --data sounds
want 3 'a sampling rate of 8000; Keel does not resample to 16000' evaluate s.keras --data sounds --sampling-rate 16000
: >sounds/slow/cover.xyz
want 0 'sounds: 1 file is left out: no sound \(wav\), or not in a class folder' evaluate s.keras --data audio:sounds
head -c 60 sounds/slow/9.wav >sounds/slow/cut.wav
want 1 'slow/cut.wav: decode WAV: cut short' evaluate s.keras --data sounds
rm sounds/slow/cut.wav

# ---- texts --------------------------------------------------------------------------------------
mkdir -p texts/bad texts/good
for i in 0 1 2 3; do
    echo "a dull and bad film $i" >texts/bad/$i.txt
    echo "what a fine film $i" >texts/good/$i.TXT
done
model=$here/golden/texts.keras
want 0 'classes in this order, .* 0 bad, 1 good' fit "$model" --data texts --epochs 2 --devices cpu:0 -o t.keras
want 0 '^rows +8 ' evaluate t.keras --data texts
want 0 '^rows +8 ' evaluate t.keras --data text:texts --max-length 6
want 0 'out.npy: 4 x 1 ' predict t.keras --data texts/bad -o out.npy
want 1 "has no folder 'worse'" evaluate t.keras --data texts --class-names good,worse
want 0 '^rows +8 ' evaluate "$model" --data texts --class-names good,bad

# ---- images -------------------------------------------------------------------------------------
"$KEEL_BUILD/make_shapes" shapes 24 5 >/dev/null || fail "make_shapes"
want 0 '' new cnn --input 16,16,3 --classes 10 --sizes 4,4 -o image.keras
for how in bilinear bicubic area lanczos3 lanczos5 gaussian mitchellcubic nearest; do
    want 0 '^rows +' evaluate image.keras --data shapes --interpolation $how --image-size 16,16
done
want 2 'must be one of these' evaluate image.keras --data shapes --interpolation cubic
want 0 '^rows +' evaluate image.keras --data images:shapes --crop-to-aspect-ratio
want 0 '^rows +' evaluate image.keras --data shapes --pad-to-aspect-ratio
want 2 'only one of them' evaluate image.keras --data shapes --crop-to-aspect-ratio --pad-to-aspect-ratio
n=$(find shapes -name '*.jpg' | wc -l)
for ((i = 0; i < n; i++)); do echo $((i % 10)); done >labels.txt
want 0 "^rows +$n " evaluate image.keras --data shapes --labels labels.txt
want 0 'classes: 0, 1, 2, 3' data shapes --labels labels.txt --image-size 16,16 --seconds 0
mkdir flat
find shapes -name '*.jpg' | head -n 20 | while read -r f; do cp "$f" "flat/${f//\//-}"; done
for ((i = 0; i < 20; i++)); do echo $((i % 2)); done >two.txt
want 0 'classes in this order.*0 0, 1 1' fit image.keras --data flat --labels two.txt --epochs 1 --devices cpu:0 -o flat.keras
want 0 '^rows +20 ' evaluate flat.keras --data flat --labels two.txt
echo 1 >>labels.txt
want 1 "labels.txt: more labels than the $n files" evaluate image.keras --data shapes --labels labels.txt
want 1 "has no folder 'cube'" evaluate image.keras --data shapes --class-names circle,cube
want 2 'a name is empty' evaluate image.keras --data shapes --class-names circle,,cube
mkdir linked && ln -s ../shapes/circle linked/a && mkdir linked/b && ln -s ../../shapes linked/b/more
want 0 "^rows +$n " evaluate image.keras --data linked --follow-links --class-names b
cp sounds/fast/0.WAV shapes/circle/
want 1 'say which to read: images:shapes, audio:shapes or text:shapes' evaluate image.keras --data shapes
want 0 'shapes: 1 file is left out' evaluate image.keras --data images:shapes
want 0 "^epoch 1/1" fit image.keras --data images:shapes --validation-split 0.25 --devices cpu:0 -o i.keras
want 0 "out.npy: $n x 10 " predict i.keras --data images:shapes -o out.npy

# Each kind of files has its own options, also in fit and data.
for data in flat images:flat; do
    want 2 "^keel data: $data: --max-length is for texts of a directory; leave it out" data $data --labels two.txt --max-length 5 --image-size 16,16
    want 2 "$data: --sampling-rate is for sounds" evaluate image.keras --data $data --labels two.txt --sampling-rate 8000
    want 2 "$data: --audio-length is for sounds" fit image.keras --data $data --labels two.txt --audio-length 8 -o i.keras
    want 2 "$data: --no-header is for CSV files" predict image.keras --data $data --no-header -o out.npy
done
want 2 'sounds: --image-size is for images that are decoded' evaluate s.keras --data audio:sounds --image-size 4,4
want 2 'texts: --pad-to-aspect-ratio is for images' evaluate t.keras --data texts --pad-to-aspect-ratio
ln -s .. linked/b/up
want 1 'a link to a folder that it lies in' evaluate image.keras --data linked --follow-links

# A pipeline goes on where a file is damaged, up to a number.
rm shapes/circle/0.WAV
damaged=$(find shapes/circle -type f | sort | head -n 1)
head -c 100 "$damaged" >short && cp short "$damaged"
stage() { printf 'source = "shapes"\n[[stage]]\nname = "%s"\nmost = %d\n' "$1" "$2" >some.toml; }
want 1 "$damaged" evaluate image.keras --data shapes
want 1 "$((n - 1)) rows can be read, 1 cannot" data shapes --image-size 32,32 --verify
stage substitute 1
want 0 "^rows +$n " evaluate image.keras --data some.toml
want 0 '1 row \([0-9]+\) could not be read and another stands for it, because' fit image.keras --data some.toml --devices cpu:0 -o i.keras
stage ignore_errors 1
want 0 "^rows +$((n - 1)) " evaluate image.keras --data some.toml
want 0 '1 row \(0\) could not be read and is left out, because' fit image.keras --data some.toml --devices cpu:0 -o i.keras

# A file of a table that is wrong has no row that could be named.
mkdir tables
printf 'a,y\n1,0\n2,1\n' >tables/0.csv
printf 'a,y\n1,0\noops,1\n' >tables/1.csv
printf 'source = "files:tables/*.csv"\n[[stage]]\nname = "interleave"\n[[stage]]\nname = "ignore_errors"\nmost = 1\n' >some.toml
want 0 '1 row could not be read and is left out, because: .*tables/1.csv:3: column' data some.toml --label y --verify

# A budget may be a part, rows that fail are listed, and the next run leaves them out.
printf 'source = "shapes"\n[[stage]]\nname = "substitute"\nrate = 0.5\nquarantine = "bad.txt"\n' >some.toml
want 0 "^rows +$n " evaluate image.keras --data some.toml
want 0 "^rows +$n " evaluate image.keras --data some.toml
[[ $(wc -l <bad.txt) == 1 ]] || fail "bad.txt has not one line: $(cat bad.txt)"
grep -q "^$damaged"$'\t''[0-9]*'$'\t''image_directory'$'\t' bad.txt || fail "bad.txt: $(cat bad.txt)"
want 0 "^rows +$((n - 1)) " evaluate image.keras --data shapes --skip-list bad.txt
want 0 "1 of $n rows is left out, of the 1 that bad.txt lists" data shapes --skip-list bad.txt --image-size 32,32 --seconds 0
want 0 "all $((n - 1)) rows can be read" data shapes --skip-list bad.txt --image-size 32,32 --verify
echo nonsense >bad.txt
want 1 'bad.txt:1: not a line of such a list' evaluate image.keras --data shapes --skip-list bad.txt
printf 'source = "shapes"\n[[stage]]\nname = "substitute"\nrate = 0.0001\n' >some.toml
want 1 '^keel evaluate: batch 1: .*the failure after 0 rows of the pass' evaluate image.keras --data some.toml

# What a decoder repairs is said by file.
whole=$(find shapes/circle -type f | sort | sed -n 2p)
cp "$whole" "$damaged"
want 0 "^all $n rows can be read" data shapes --image-size 32,32 --verify
{ head -c -2 "$whole" && printf '%040d\377\331' 0; } >"$damaged"
want 0 "1 file gave a warning: $damaged: Corrupt JPEG data: [0-9]+ extraneous bytes" data shapes --image-size 32,32 --verify
want 0 "1 file gave a warning: $damaged" evaluate image.keras --data shapes
want 0 "note .*1 file gave a warning: $damaged" fit image.keras --data shapes --epochs 2 --devices cpu:0 -o i.keras

# Rows that do not come: the line, the error, and what was learned until then.
want 1 'no rows for .*sleep 60 is being opened.*--input-timeout' data 'exec:sleep 60' --input-timeout 0.3
want 2 '--input-timeout 0: must be above 0' data shapes --input-timeout 0
stage nothing 1
want 2 "there is no stage 'nothing'" evaluate image.keras --data some.toml
((failed == 0)) && echo passed
exit $((failed > 0))

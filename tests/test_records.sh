#!/bin/bash
# Records on the command line: keel fit, evaluate, predict and plan on TFRecord files and tar shards
# that TensorFlow and WebDataset wrote.
set -u
here=$PWD
cd "$KEEL_TEST_TMP" || exit 2
failed=0

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}

# give NAME: a file of records.json.
give()
{
    grep -o "\"$1\":\"[^\"]*\"" "$here/golden/records.json" | cut -d'"' -f4 | base64 -d >"$1"
    [[ -s $1 ]] || fail "records.json has no $1"
}

# want CODE PATTERN ARGUMENT...
want()
{
    local code=$1 pattern=$2 got
    shift 2
    "$KEEL" "$@" >out.txt 2>err.txt
    got=$?
    ((got == code)) || fail "keel $*: exit code $got, not $code: $(head -c 300 err.txt)"
    grep -qE -e "$pattern" out.txt err.txt || fail "keel $*: nothing like '$pattern' in: $(head -c 300 out.txt err.txt)"
}

for f in numbers.tfrecord numbers.tfrecord.gz images.tfrecord ustar.tar wds-000.tar wds-001.tar; do
    give $f
done
"$KEEL" new mlp --input 4 --classes 3 -o m.keras >/dev/null || fail "keel new mlp"
"$KEEL" new mlp --input 2,3 --classes 2 -o raw.keras >/dev/null || fail "keel new mlp"
"$KEEL" new cnn --input 14,18,3 --classes 3 --sizes 4,8 -o cnn.keras >/dev/null || fail "keel new cnn"

want 0 '6 rows' fit m.keras --data numbers.tfrecord --epochs 2 --batch-size 4 -o o.keras
want 0 'rows  *6' evaluate o.keras --data 'num*.tfrecord'
want 0 'rows  *12' evaluate o.keras --data 'numbers.tfrecord{,.gz}'
want 0 '6 x 3' predict o.keras --data numbers.tfrecord.gz -o p.npy
want 0 '' plan m.keras --data numbers.tfrecord --batch-size 4
for k in 0 1; do cp numbers.tfrecord train-0000$k-of-00002; done # as TensorFlow names shards
want 2 'has the records of a TFRecord file; name it tfrecord:train-00000-of-00002' \
    evaluate o.keras --data train-00000-of-00002
want 0 'rows  *12' evaluate o.keras --data 'tfrecord:train-*'
want 1 'm.keras: .*no TFRecord file' evaluate o.keras --data tfrecord:m.keras
want 0 '3 rows, 3 for validation' fit m.keras --data numbers.tfrecord --validation-split 0.4 --epochs 1 -o v.keras
want 0 '0 cat, 1 dog' fit raw.keras --data numbers.tfrecord --inputs raw --label label \
    --features 'raw=uint8(2,3)' --epochs 1 -o r.keras
want 1 "give their type and shape, as features 'raw=uint8" fit raw.keras --data numbers.tfrecord \
    --inputs raw --label label -o r.keras
want 0 '3 rows' fit cnn.keras --data images.tfrecord --inputs image --label label --epochs 1 -o i.keras
want 0 '3 rows' fit m.keras --data ustar.tar --epochs 1 -o t.keras
want 0 'rows  *4' evaluate cnn.keras --data 'wds-{000..001}.tar' --inputs png
want 0 '4 x 3' predict cnn.keras --data 'wds-*.tar' -o q.npy
want 2 'features .* are given for TFRecord files' evaluate m.keras --data ustar.tar --features 'npy=(4)'
mkdir shards && mv wds-*.tar shards
want 0 'rows  *4' evaluate cnn.keras --data shards

# What --verify says is the least, is.
want 0 '^memory   a fit needs --input-memory [0-9]+ .* in batches of 2; to read a row takes up to .*shards/wds-00' \
    data shards --image-size 14,18 --verify --batch-size 2
least=$(sed -n 's/.*--input-memory \([0-9]*\) .*/\1/p' out.txt)
want 0 'rows  *4' evaluate cnn.keras --data shards --batch-size 2 --input-memory "$least"
want 2 "needs at least $least" evaluate cnn.keras --data shards --batch-size 2 --input-memory $((least - 1))
want 0 'saved' fit cnn.keras --data shards --batch-size 2 --epochs 1 --input-memory "$least" -o w.keras
want 2 "needs at least $least" fit cnn.keras --data shards --batch-size 2 --input-memory $((least - 1)) -o w.keras
want 2 'needs at least' predict cnn.keras --data shards --input-memory 100 -o q.npy
want 2 'give bytes' predict cnn.keras --data shards --input-memory some -o q.npy
want 0 '4 x 3' predict cnn.keras --data shards --batch-size 2 --input-memory "$least" -o q.npy

# A damaged record is named, whatever the devices.
cp numbers.tfrecord bad.tfrecord
printf 'XX' | dd of=bad.tfrecord bs=1 seek=700 conv=notrunc 2>/dev/null
want 1 'bad.tfrecord: record 3 at byte 682 is damaged' fit m.keras --data bad.tfrecord \
    --devices cpu:0-2 -o o2.keras
head -c 1000 numbers.tfrecord >bad.tfrecord
want 1 'bad.tfrecord: is cut short in record' evaluate m.keras --data bad.tfrecord

# Any devices train on the same rows: the same bits.
for n in 0 0-2; do
    want 0 '12 rows' fit m.keras --data 'numbers.tfrecord{,.gz}' --epochs 2 --batch-size 5 --seed 3 \
        --reproducible --devices "cpu:$n" -o "d$n.keras"
    "$KEEL" predict "d$n.keras" --data numbers.tfrecord -o "d$n.npy" >/dev/null || fail "predict d$n"
done
cmp -s d0.npy d0-2.npy || fail "one device and three learned other weights"
((failed == 0)) || { echo "$failed failed"; exit 1; }
echo "records are read by every command"

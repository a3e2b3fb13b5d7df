#!/bin/bash
# Commands on a stack of 128 KiB, which their threads get, too: a limit that programs for many threads set.
set -u
cd "$KEEL_TEST_TMP" || exit 2
failed=0
rows() # N: a table of two numbers and a label
{
    echo a,b,label
    for ((i = 0; i < $1; i++)); do echo "$((i * 37 % 101)).5,$((i * 29 % 53)).25,$((i % 3))"; done
}
says() # ARG...: the command does what it should
{
    (
        ulimit -s 128
        "$KEEL" "$@"
    ) >out.txt 2>&1
    local status=$?
    ((status == 0)) && return
    echo "keel $*: exit code $status: $(tail -n 3 out.txt)"
    failed=1
}
rows 40 >rows.csv
says --help
says devices
says new mlp --input 2 --classes 3 --sizes 300,300 -o m.keras
says new cnn --input 16,16,3 --classes 10 --sizes 8,16 -o c.keras
says data rows.csv --label label
says inspect m.keras
says inspect c.keras --kernels
says plan m.keras --rows 40 --batch-size 16 --devices cpu:0-3
says plan c.keras --rows 40 --batch-size 16 --devices cpu:0-3 --reproducible
says fit m.keras --data rows.csv --label label --validation rows.csv --epochs 2 --batch-size 16 --devices cpu:0-3 \
    --checkpoint ck --checkpoint-every 1 --profile --callbacks 'EarlyStopping(patience=1)' -o t.keras
says fit m.keras --data rows.csv --label label --optimizer 'Adam(0.01)' --metrics accuracy --epochs 2 -o u.keras
says evaluate t.keras --data rows.csv --label label --devices cpu:0-3 --reproducible
says predict t.keras --data rows.csv --label label -o out.npy
says data out.npy
says simulate m.keras --batch-size 16 --machines 2 --seconds 0.001 --network 10Gbit,20us --devices cpu:0
((failed == 0)) && echo "all commands run on a stack of 128 KiB"
exit $failed

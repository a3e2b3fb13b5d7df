#!/bin/bash
# test_bench_gpu.sh: make bench-gpu without a GPU: it says in a line what is missing; and a dry run, Keel on
# processors and peers that only answer, writes the table of GPUs between its marks and nowhere else.
set -u -o pipefail
run=$PWD/../bench/run.py keel=$KEEL failed=0
cd "$KEEL_TEST_TMP" || exit 2
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 77; }

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}
holds() # FILE TEXT: a line of the file has the text
{
    grep -qF -- "$2" "$1" || fail "no line of $1 has '$2'"
}

# ---- no GPU -------------------------------------------------------------------------------------
if ! "$keel" devices | grep -q '^cuda:'; then
    python3 "$run" --gpu --keel "$keel" >out.txt 2>err.txt
    [[ $? == 1 && ! -s out.txt && $(wc -l <err.txt) == 1 ]] || fail "without a GPU: $(cat out.txt err.txt)"
    holds err.txt "no GPU was measured: keel bench: devices 'cuda:0'"
fi
python3 "$run" --dry --keel "$keel" >out.txt 2>&1 && fail "--dry without --gpu is taken"
holds out.txt "--dry is for --gpu"
python3 "$run" --gpu --dry --keel "$keel" --works nothing:5 >out.txt 2>&1 && fail "an unknown work is taken"
holds out.txt "--works 'nothing:5': there are mlp"
python3 "$run" --gpu --dry --keel "$keel" --only "1 lane" >out.txt 2>&1 && fail "a column of processors is taken"
holds out.txt "--only '1 lane': there are 1 GPU, 1 GPU fast, all GPUs, keras-tf"

# ---- a dry run ----------------------------------------------------------------------------------
# A Python that answers as peers do: torch_loop.py takes 2 ms a step (compiled 1, with TF32 a tenth), JAX
# fails, and Keras is not installed.
cat >python <<'END'
#!/bin/bash
case $* in
*keras_fit.py*) echo '{"missing": "No module named keras"}'; exit 3 ;;
*jax_loop.py*) answer='{"error": "no room"}' ;;
*--tf32*) answer='{"ms": 0.2, "peak_mib": 7, "versions": {"torch": "9.9"}}' ;;
*compile*) answer='{"ms": 1.0, "peak_mib": 7, "versions": {"torch": "9.9"}}' ;;
*) answer='{"ms": 2.0, "peak_mib": 7, "versions": {"torch": "9.9"}}' ;;
esac
[[ $* == *--serve*--gpu* ]] || exit 4
echo '{"ready": "peer"}'
while read -r _; do echo "$answer"; done
END
chmod +x python
printf 'before\n<!-- table: written by make bench-gpu -->\nold\n<!-- end of GPU table -->\nbehind\n' >page.md
python3 "$run" --gpu --dry --keel "$keel" --peers "$PWD/python" --works mlp:64,mlp:256 --seconds 0.05 --rounds 1 \
    --output page.md --logs logs >out.txt 2>err.txt || fail "the dry run: $(tail -n 5 err.txt)"
[[ $(head -n 1 page.md) == before && $(tail -n 1 page.md) == behind ]] || fail "the page around the table has changed"
grep -q '^old$' page.md && fail "the old table is still there"
holds page.md "- GPUs: none (dry run: Keel ran on processors)"
holds page.md "torch 9.9"
holds page.md "### float32"
holds page.md "### mixed_bfloat16"
holds page.md "Left out: keras-tf (No module named keras); mirrored (No module named keras); keras-jax"
holds page.md "| ms per step | 1 GPU | 1 GPU fast | all GPUs | torch | torch fast | compile | compile fast |"
holds page.md "| ms per step | 1 GPU | all GPUs | torch | compile |"
holds page.md "| Keel, rows/s | fastest peer | Keel over it | over MirroredStrategy | all GPUs over 1 | fast over exact |"
[[ $(grep -c '^| mlp, batch 64 | .* | 2.00 | 0.20 | 1.00 | 0.20 |$' page.md) == 1 ]] || fail "the times of the peers are not in the table"
[[ $(grep -cE '^\| mlp, batch (64|256) \| [0-9,]+ \| compile \| [0-9.]+ \| - \| [0-9.]+ \| [0-9.-]+ \|$' page.md) == 4 ]] ||
    fail "the fastest peer is not 'compile' in all works: $(grep '^| mlp' page.md)"
python3 -c 'import json, sys; r = json.load(open("logs/bench-gpu.json")); sys.exit(len(r["float32"]["mlp:64"]["jax"]) != 1)' ||
    fail "bench-gpu.json does not have what failed"
printf 'no marks\n' >page.md
python3 "$run" --gpu --dry --keel "$keel" --output page.md >out.txt 2>&1 && fail "a page without marks is taken"
holds out.txt "<!-- table: written by make bench-gpu --> and <!-- end of GPU table --> once each; nothing is written"

((failed == 0)) || exit 1

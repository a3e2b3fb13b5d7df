#!/bin/bash
# test_bench_page.sh: make bench writes the table of this kind of processor into its page, and leaves those
# of others.
set -u -o pipefail
run=$PWD/../bench/run.py failed=0
cd "$KEEL_TEST_TMP" || exit 2
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 77; }

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}
measure()
{
    python3 "$run" --keel "$KEEL" --works mlp:64 --only "2 lanes" --dtype float32 --seconds 0.05 --rounds 1 \
        --output page.md --logs logs >out.txt 2>err.txt || fail "the table: $(tail -n 5 err.txt)"
}

cat >page.md <<'END'
before
<!-- table: written by make bench -->

## On a processor of another kind

- machine: another
<!-- end of table -->
## behind
END
measure
[[ $(head -n 1 page.md) == before && $(tail -n 1 page.md) == "## behind" ]] || fail "the page around the tables has changed"
[[ $(grep -c '^## On ' page.md) == 2 ]] || fail "not one section for each of the two kinds: $(grep '^## ' page.md)"
grep -qx -- '- machine: another' page.md || fail "the table of the other kind is gone"
grep -q '^| mlp, batch 64 | [0-9.]* |$' page.md || fail "the new table has no time"
sed -i 's/^| mlp, batch 64 .*/| an old line |/' page.md
measure
[[ $(grep -c '^## On ' page.md) == 2 ]] || fail "the second time: $(grep '^## ' page.md)"
grep -q 'an old line' page.md && fail "the old table of this kind is still there"
grep -qx -- '- machine: another' page.md || fail "the table of the other kind is gone the second time"

((failed == 0)) || exit 1

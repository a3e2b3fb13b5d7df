#!/bin/bash
# A machine that cannot fetch oneDNN 3.2, or is given another file, builds with Debian's and says so in
# one line; who asks for one of the two gets it or an error.
set -u
failed=0

# configured WITH PATTERN ARGUMENT...: CMake ends well, uses WITH (wheel, debian) and says PATTERN
configured()
{
    local with=$1 pattern=$2 dir
    shift 2
    dir=$(mktemp -d "$KEEL_TEST_TMP/build.XXXXXX")
    if ! cmake -S .. -B "$dir" -G Ninja -DKEEL_TESTS=OFF "$@" >"$dir/log" 2>&1; then
        echo "error: $*: CMake failed: $(tail -n 5 "$dir/log")" && failed=1
    elif ! grep -q -- "^-- oneDNN: $with" "$dir/log" || ! grep -qE -- "$pattern" "$dir/log"; then
        echo "error: $*: no '$pattern' with $with in: $(cat "$dir/log")" && failed=1
    fi
}

# refused PATTERN ARGUMENT...: CMake ends with an error that says PATTERN
refused()
{
    local pattern=$1 dir
    shift
    dir=$(mktemp -d "$KEEL_TEST_TMP/build.XXXXXX")
    if cmake -S .. -B "$dir" -G Ninja -DKEEL_TESTS=OFF "$@" >"$dir/log" 2>&1; then
        echo "error: $*: no error" && failed=1
    elif ! grep -qE -- "$pattern" "$dir/log"; then
        echo "error: $*: no '$pattern' in: $(cat "$dir/log")" && failed=1
    fi
}

nowhere=file://$KEEL_TEST_TMP/nowhere
wrong=$KEEL_TEST_TMP/wrong
grep -o '^    [0-9a-f/]*/onednn.*whl' ../cmake/onednn.cmake | while read -r address; do
    mkdir -p "$(dirname "$wrong/$address")"
    echo 'not the file' >"$wrong/$address"
done
if [ -n "$(ls /usr/include/dnnl.h /usr/include/*/dnnl.h 2>/dev/null)" ]; then
    configured debian 'oneDNN 3.2: not to be had .*building with .*libdnnl' "-DKEEL_DNNL_SITE=$nowhere"
    configured debian 'is not the file that Keel knows' "-DKEEL_DNNL_SITE=file://$wrong"
    configured debian '' -DKEEL_DNNL=debian "-DKEEL_DNNL_SITE=$nowhere"
fi
refused 'oneDNN 3.2: ' -DKEEL_DNNL=wheel "-DKEEL_DNNL_SITE=$nowhere"
refused 'use AUTO, wheel, debian or OFF' -DKEEL_DNNL=mkl
configured OFF '' -DKEEL_DNNL=OFF
if [ -e "$KEEL_BUILD/onednn" ]; then # what is there is not fetched again
    configured wheel '' "-DKEEL_DNNL_DIR=$KEEL_BUILD/onednn" "-DKEEL_DNNL_SITE=$nowhere"
fi
exit $failed

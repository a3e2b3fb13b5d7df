#!/bin/bash
# keel data --html: one page that shows what the data is, whatever the data is, and no text of which
# becomes part of the page's own HTML.
set -u
cd "$KEEL_TEST_TMP" || exit 2
export LC_ALL=C.UTF-8
failed=0

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}

# page NAME ARGUMENT...: write NAME.html
page()
{
    local name=$1
    shift
    "$KEEL" data --seconds 0.05 --html "$name.html" "$@" >out.txt 2>err.txt ||
        fail "$name: $(head -c 300 err.txt)"
    [[ $(tail -n 1 "$name.html" 2>/dev/null) == '</body></html>' ]] || fail "$name: the page does not end"
}

has() # NAME PATTERN...
{
    local name=$1 p
    shift
    for p; do
        grep -qE -e "$p" "$name.html" || fail "$name.html has nothing like '$p'"
    done
}

count() # NAME PATTERN N
{
    local n
    n=$(grep -cE -e "$2" "$1.html")
    [[ $n == "$3" ]] || fail "$1.html has '$2' $n times, not $3"
}

refused() # CODE PATTERN ARGUMENT...
{
    local code=$1 pattern=$2 got
    shift 2
    "$KEEL" data "$@" >out.txt 2>err.txt
    got=$?
    ((got == code)) || fail "keel data $*: exit code $got, not $code"
    grep -qE -e "$pattern" err.txt || fail "keel data $*: nothing like '$pattern' in $(cat err.txt)"
}

# images whose values are 0 to 1, and 0 to 255
page floats 'synthetic(x=float32(12,10,3),y=int(4),rows=50)' --rows 5
has floats '50 rows' '0 to 1 is black to white' '<td>\(12, 10, 3\)' 'rows/s' "default-src 'none'"
count floats 'data:image/png;base64,iVBORw0KGgo' 5
page bytes 'synthetic(x=uint8(12,10,4),rows=3)'
has bytes '0 to 255 is black to white'
count bytes 'width="10" height="12" src="data:image/png' 3

# a chain of stages, and batches: of each the first 16 rows
cat >batches.toml <<'EOF'
source = "synthetic(x=uint8(9,9,1),y=int(7),rows=100)"
[[stage]]
name = "shuffle"
buffer_size = 10
[[stage]]
name = "batch"
batch_size = 20
EOF
page batches batches.toml --rows 2
has batches '5 batches' '>shuffle<' '>batch<' '1 \[15\]: '
count batches '<img ' 32
count batches 'rows/s</text>' 3
page unmeasured batches.toml --rows 0 --seconds 0
count unmeasured 'rows/s</text>' 0
count unmeasured '<img ' 0

# sounds, short vectors, a stream
page sound 'synthetic(x=float32(800,2),y=normal(3),rows=9)' --rows 2
has sound 'from bottom to top' '<tr><td>y<td>-?[0-9.]+ '
count sound '<path fill="none"' 4
printf '%s\n' '<script>alert(1)</script> & "quoted"' $'a \e[31mred' $'bad \xff byte' >'<b>texts.txt'
page texts 'lines:<b>texts.txt' --seconds 0
has texts '&lt;script&gt;alert\(1\)&lt;/script&gt; &amp; &quot;quoted&quot;' 'a \?\[31mred' 'bad \? byte' '&lt;b&gt;texts'
grep -qE '<script|<b>|'$'\e' texts.html && fail 'a text of the data is a part of the page'

# rows that cannot be read, where a stage passes over them
mkdir -p photos/cats photos/dogs
for i in 1 2 3; do
    printf 'P' >"photos/cats/$i.png"
done
printf 'BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\2\0\0\0\1\0\x18\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\3\4\5\6\0\0\7\x8\x9\xa\xb\xc\0\0' >photos/dogs/a.bmp
cp photos/dogs/a.bmp photos/cats/4.bmp
cat >photos.toml <<'EOF'
source = "photos"
[[stage]]
name = "ignore_errors"
most = 10
EOF
page photos photos.toml --rows 5 --image-size 2,2 --seconds 0
has photos 'Left out by ignore_errors' '0: failed.*photos/cats/1.png' ': cats' ': dogs'
count photos '<img ' 2

# what is refused, before the data is read
refused 2 "must end in .html" batches.toml --html page.txt
refused 2 "give one of them" batches.toml --html page.html --verify
refused 1 "no-such-folder" batches.toml --html no-such-folder/page.html
refused 1 "photos/cats/1.png" photos --image-size 2,2 --html none.html
[[ -e none.html ]] && fail 'a page is there although the data cannot be read'
[[ -z $(ls ./*.tmp 2>/dev/null) ]] || fail 'a part of a page is left'

# no pictures where nobody sees them
COLORTERM=truecolor "$KEEL" data batches.toml --rows 1 --seconds 0 >out.txt
grep -q $'\e' out.txt && fail 'a file has colours'
if command -v script >/dev/null; then
    terminal() { env "$@" script -qec "'$KEEL' data batches.toml --rows 1 --seconds 0" /dev/null </dev/null; }
    terminal COLORTERM=truecolor TERM=xterm | grep -q $'\e\[38;2;.*\u2580' || fail 'a terminal shows no picture'
    terminal COLORTERM=24bit TERM=xterm | grep -qE '^0 \[0\]: [0-6] +0 \[1\]: [0-6] ' || fail 'pictures have no labels beside each other'
    terminal COLORTERM=truecolor NO_COLOR=1 | grep -q $'\e' && fail 'NO_COLOR is not heeded'
    terminal COLORTERM=no | grep -q $'\e' && fail 'colours in a terminal that has none'
fi
((failed == 0)) || { echo "$failed failed"; exit 1; }

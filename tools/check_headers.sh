#!/bin/sh
# The public headers: each function, or block of functions, has Returns, Owns and Threads above it; each
# header stands alone and stays under 400 lines. keel/mpi.h includes the header of an MPI: it is compiled
# with each MPI that pkg-config knows. Prints each offence; exits 1 if there is one.
set -eu
cd "$(dirname "$0")/.."
bad=0
awk '
FNR == 1 { doc = ""; depth = 0; inside = 0 }
FNR == 400 { print FILENAME ": 400 lines or more: split it"; bad = 1 }
inside { doc = doc "\n" $0; if (/\*\//) inside = 0; next }
/^\/\*/ { doc = $0; if (!/\*\//) inside = 1; next }
/^#/ { next }
{
    line = $0
    if (depth == 0 && !/^typedef/ && !/^[ \t}]/ && match(line, /keel_[a-z0-9_]+\(/)) {
        name = substr(line, RSTART, RLENGTH - 1)
        for (i = split("Returns Owns Threads", want, " "); i > 0; i--)
            if (doc !~ ("\n \\* " want[i] " ")) {
                print FILENAME ":" FNR ": " name " does not say " want[i]; bad = 1
            }
    }
    opened = gsub(/{/, "{", line); closed = gsub(/}/, "}", line)
    if (/^extern "C" {/) opened = 0
    depth += opened - closed; if (depth < 0) depth = 0
    if (/^[ \t]*$/ && depth == 0) doc = "" # functions without a blank line between share one text
}
END { exit bad }' include/keel/*.h || bad=1
compiles() # HEADER FLAG...
{
    header=$1
    shift
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -fsyntax-only -Iinclude "$@" -x c "$header" || bad=1
}
for h in include/keel/*.h; do
    [ "$h" = include/keel/mpi.h ] || compiles "$h"
done
for mpi in ompi-c mpich; do
    flags=$(pkg-config --cflags "$mpi" 2>/dev/null) || continue
    compiles include/keel/mpi.h $(echo "$flags" | sed 's/-I */-isystem /g')
done
exit $bad

#!/bin/sh
# exports.sh HEADER...: print a linker version script that exports the functions and objects which the
# public headers declare, and nothing else.
set -eu
echo '{ global:'
cat "$@" | awk '
    { gsub(/\/\*[^*]*\*\//, ""); if (sub(/\/\*.*/, "")) skip = 1; else if (skip) { if (sub(/.*\*\//, "")) skip = 0; else next } }
    /^#/ || /^typedef/ { next }
    { line = $0
      while (match(line, /keel_[a-z0-9_]+ *(\(|\[|;)/)) {
          name = substr(line, RSTART, RLENGTH); sub(/[^a-z0-9_].*/, "", name); print "    " name ";"
          line = substr(line, RSTART + RLENGTH) } }' | sort -u
echo '  local: *; };'

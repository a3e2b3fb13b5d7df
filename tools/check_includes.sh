#!/bin/sh
# Who may see whom. The table of rooms in ARCHITECTURE.md is the rule: a file may include what its own
# room has and the rooms of the column "may include"; a room is the longest folder that has a row. cli, mpi
# and examples see themselves and the public headers. Also: target_clones stands in one place. Prints
# each offence; exits 1 if there is one.
set -eu
cd "$(dirname "$0")/.."
files=$(find src cli examples include mpi -name '*.[ch]' -o -name '*.cu' 2>/dev/null | sort)
[ -n "$files" ] || exit 0
awk '
FILENAME == "ARCHITECTURE.md" {
    if (!/^\|/) { table = 0; next }
    if (/^\| *room *\| *may include *\|/) { table = 1; next }
    if (!table || /^\|---/) next
    split($0, cell, "|")
    seen = cell[3]; gsub(/[`,]/, " ", seen)
    n = split(cell[2], folder, ",")
    for (i = 1; i <= n; i++) {
        gsub(/[` ]/, "", folder[i])
        if (sub(/^src\//, "", folder[i]) && sub(/\/$/, "", folder[i])) { sees[folder[i]] = " " seen " "; rooms++ }
    }
    next
}
FNR == 1 {
    if (!rooms) { print "ARCHITECTURE.md: no table of rooms that tools/check_includes.sh can read"; bad = 1; exit }
    split(FILENAME, part, "/")
    room = part[1] == "src" ? room_of(substr(FILENAME, 5)) : part[1]
    if (room == "") { print FILENAME ": its room is not in the table of ARCHITECTURE.md"; bad = 1 }
}
/target_clones/ && FILENAME != "src/base/clones.h" {
    print FILENAME ":" FNR ": write KEEL_CLONES of base/clones.h, which spares the sanitizers"; bad = 1
}
/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    name = $0; sub(/^[^"<]*["<]/, "", name); sub(/[">].*/, "", name)
    quoted = $0 ~ /include[ \t]*"/
    if (name ~ /^keel\//) next                               # public
    if (part[1] != "src") {                                  # cli, mpi, examples, include
        if (quoted && (part[1] !~ /^(cli|mpi)$/ || name ~ /\//)) offence(" sees only <keel/...>")
        next
    }
    if (!quoted) next
    if (name !~ /\//) { offence(" names no room: write it from src/"); next }
    to = room_of(name)
    if (to == room || sees[room] ~ / everything /) next
    if (to == "" || index(sees[room], " " to " ") == 0) offence(" must not see " name)
}
function room_of(path) {
    while (sub(/\/[^\/]*$/, "", path)) if (path in sees) return path
    return ""
}
function offence(why) { print FILENAME ":" FNR ": " room why ": " $0; bad = 1 }
END { exit bad }' ARCHITECTURE.md $files

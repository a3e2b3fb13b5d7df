#!/bin/sh
# Who may see whom: refuse an #include that goes up a room. Rooms and what they see stand in the table;
# every room sees itself and the public headers. Also: target_clones stands in one place. Prints each
# offence; exits 1 if there is one.
set -eu
cd "$(dirname "$0")/.."
files=$(find src cli examples include -name '*.[ch]' 2>/dev/null | sort)
[ -n "$files" ] || exit 0
awk '
BEGIN {
    low = "base tensor"
    sees["base"] = ""
    sees["tensor"] = "base"
    sees["device"] = low
    sees["comm"] = low " device"
    sees["ops"] = low                     # and device, but only in files of a vendor: below
    sees["graph"] = low " device ops"
    named = low " ops graph"
    sees["activations"] = sees["initializers"] = sees["regularizers"] = named
    sees["constraints"] = sees["schedules"] = named
    sees["losses"] = named
    sees["metrics"] = named " losses"
    sees["optimizers"] = named " schedules"
    sees["layers"] = named " activations initializers regularizers constraints"
    sees["io"] = low
    sees["data"] = low " io"              # sources read the files of io; neither sees a graph
    sees["model"] = named " io layers losses metrics optimizers activations initializers regularizers" \
        " constraints schedules"
    sees["plan"] = low " device ops graph"
    sees["train"] = "*"
}
FNR == 1 {
    n = split(FILENAME, part, "/")
    room = part[1] == "src" ? part[2] : part[1]
    vendor = FILENAME ~ /_((dnnl|avx2|avx512|avx512_bf16|amx|cuda)\.c|vector\.h)$/
    if (part[1] == "src" && !(room in sees)) {
        print FILENAME ": room " room " is not in the table of tools/check_includes.sh"; bad = 1
    }
}
/target_clones/ && FILENAME != "src/base/clones.h" {
    print FILENAME ":" FNR ": write KEEL_CLONES of base/clones.h, which spares the sanitizers"; bad = 1
}
/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    name = $0; sub(/^[^"<]*["<]/, "", name); sub(/[">].*/, "", name)
    quoted = $0 ~ /include[ \t]*"/
    to = name; slash = sub(/\/.*/, "", to)
    if (to == "keel") next                                   # public
    if (part[1] != "src") {                                  # cli, examples, include
        if (quoted && (part[1] != "cli" || slash)) offence(" sees only <keel/...>")
        next
    }
    if (!quoted || to == room) next
    if (!slash) { offence(" names no room: write it from src/"); next }
    if (room == "ops" && vendor && to == "device") next
    if (sees[room] != "*" && index(" " sees[room] " ", " " to " ") == 0) offence(" must not see " to)
}
function offence(why) { print FILENAME ":" FNR ": " room why ": " $0; bad = 1 }
END { exit bad }' $files

#!/bin/sh
# terminal_svg.sh <TEXT >PICTURE.svg: a terminal's text as a picture, for pages that people look at.
awk '
{ gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); line[NR] = $0; if (length($0) > widest) widest = length($0) }
END {
    w = 24 + widest * 7.8; h = 52 + NR * 18
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", w, h, w, h
    print "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16202c\"/>"
    split("#e0605a #d9a83e #5aa860", dot, " ")
    for (i = 1; i <= 3; i++) printf "<circle cx=\"%d\" cy=\"18\" r=\"5\" fill=\"%s\"/>\n", 2 + 16 * i, dot[i]
    print "<g font-family=\"DejaVu Sans Mono,Menlo,Consolas,monospace\" font-size=\"13\" xml:space=\"preserve\">"
    for (i = 1; i <= NR; i++) {
        colour = line[i] ~ /^\$/ ? "#8fd3ff" : line[i] ~ /^(split|accuracy)/ ? "#a8e6a1" : "#d5dde6"
        printf "<text x=\"12\" y=\"%d\" fill=\"%s\">%s</text>\n", 32 + 18 * i, colour, line[i]
    }
    print "</g>\n</svg>"
}'

#!/bin/sh
# A layer is a file of at most 80 lines: arguments, checks, weights, the ops it emits. What a second
# layer needs, too, is in a file that begins with '_', or in the frame (src/layers/*.[ch]). Those
# below are longer, each for its reason. Prints each offence, also a line of the list that is no
# longer needed; exits 1 if there is one.
set -eu
cd "$(dirname "$0")/.."
allowed='
attention/grouped_query_attention        shapes of heads that share one, and of their scores
attention/multi_head_attention           any dims may attend: how heads turn, there and back
core/einsum_dense                        what an equation makes of input, kernel, bias and output
core/reversible_embedding                two layers in one: there, and back to logits of a type
normalization/batch_normalization        statistics under a mask, renorm, whole numbers in any policy
operations/ops_dot_product_attention     a second way with scores, for a bias or a mask
operations/ops_get_item                  the bounds and steps of slices in Python
operations/ops_image_extract_patches     patches that lie side by side, and those that overlap
operations/ops_image_perspective_transform  the equations of four points
operations/ops_image_scale_and_translate three lists of numbers, each checked against the others
operations/ops_image_ssim                the formula
operations/ops_norm                      eight norms
preprocessing/normalization              numbers that are broadcast to the dims that are kept
preprocessing/stft_spectrogram           seven things to say of a spectrum
preprocessing/text_vectorization         texts are standardized, cut and joined to runs of words
'
find src/layers -mindepth 2 -name '*.c' ! -name '_*' | sort | xargs wc -l | awk -v allowed="$allowed" '
BEGIN {
    n = split(allowed, line, "\n")
    for (i = 1; i <= n; i++) if (split(line[i], word, " ")) reason["src/layers/" word[1] ".c"] = 1
}
$2 == "total" { next }
$1 > 80 && !($2 in reason) {
    print $2 ": " $1 " lines, more than 80: move what is not this layer alone to the frame"; bad = 1
}
$1 > 80 { delete reason[$2] }
END {
    for (file in reason) { print file ": 80 lines or fewer, or gone: take it off the list"; bad = 1 }
    exit bad
}'

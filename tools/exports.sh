#!/bin/sh
# exports.sh HEADER...: print a linker version script that exports the functions and objects which the
# public headers declare, and what the plug-in for GPUs uses, which is of the same build
# (src/device/cuda_plugin.h); and nothing else.
set -eu
echo '{ global:'
cat "$@" | awk '
    { gsub(/\/\*[^*]*\*\//, ""); if (sub(/\/\*.*/, "")) skip = 1; else if (skip) { if (sub(/.*\*\//, "")) skip = 0; else next } }
    /^#/ || /^typedef/ { next }
    { line = $0
      while (match(line, /keel_[a-z0-9_]+ *(\(|\[|;)/)) {
          name = substr(line, RSTART, RLENGTH); sub(/[^a-z0-9_].*/, "", name); print "    " name ";"
          line = substr(line, RSTART + RLENGTH) } }' | sort -u
echo '    keel_op_*; keel_activity_op; keel_cell_*; keel_recurrent_steps; keel_loss_*; keel_metric_*; keel_target_check;'
echo '    keel_call_failed; keel_calloc; keel_free; keel_fail; keel_shape_count;'
echo '    keel_dtype_is_narrow; keel_dtype_size;'
echo '    keel_confusion_add; keel_confusion_is_even; keel_confusion_thresholds; keel_fbeta_add;'
echo '    keel_iou_add; keel_iou_cuts_weights; keel_iou_kind;'
echo '  local: *; };'

/* See tree.h. Node (level, index) has the rows [cut(index), cut(index + 1)) of 2^level parts. */
#include "base/tree.h"

static int64_t border(int64_t n, int level, int64_t index)
{
    return keel_cut_first(n, (int64_t)1 << level, index);
}

int64_t keel_tree_next(int64_t n, int64_t row, int64_t end)
{
    int64_t index = 0;
    for (int level = 0;; level++) {
        const int64_t next = border(n, level, index + 1);
        if (border(n, level, index) == row && next <= end) return next;
        index = 2 * index + (row >= border(n, level + 1, 2 * index + 1));
    }
}

int keel_tree_closes(int64_t n, int64_t first, int64_t next, int64_t begin, int64_t end,
                     bool upward)
{
    int64_t index = 0;
    int closes = 0;
    for (int level = 0;; level++) {
        const int64_t a = border(n, level, index), b = border(n, level, index + 1);
        if (a == first && b == next) return closes;
        if (upward ? b == next && a >= begin : a == first && b <= end) closes++;
        index = 2 * index + (first >= border(n, level + 1, 2 * index + 1));
    }
}

/* The cut of a step into row ranges, and the tree that fixes the order of all sums over rows.
 *
 * The root has all n rows. A node of two or more rows has two children, divided where the cut of
 * the step into twice as many parts has a border (keel_cut_first); so shards are nodes. A node of
 * one row is a leaf. A worker with rows [begin, end) folds them into the largest nodes inside that
 * range, at most 2 log2 n, and the reducer adds those in the same pairs. So every sum has the same
 * additions, for any cut of the rows. Six rows:
 *
 *     0      1      2      3      4      5
 *      \    /       |       \    /       |
 *      [0, 2)      [2]      [3, 5)      [5]
 *           \      /              \      /
 *            [0, 3)                [3, 6)
 *                  \              /
 *                       [0, 6)
 */
#ifndef KEEL_BASE_TREE_H
#define KEEL_BASE_TREE_H
#include "base/round.h"
#include <stdbool.h>
#include <stdint.h>

/* The first row of part i of a step of n rows, n <= 2^40 (rule 1 of ARCHITECTURE.md). Part i of S
 * is [ceil(i n / S), ceil((i + 1) n / S)). Sizes differ by at most one, and cuts are nested: a
 * border between two lanes is a border between four lanes too. */
static inline int64_t keel_cut_first(int64_t n, int64_t parts, int64_t i)
{
    return keel_div_up(i * n, parts);
}
static inline int64_t keel_cut_rows(int64_t n, int64_t parts, int64_t i)
{
    return keel_cut_first(n, parts, i + 1) - keel_cut_first(n, parts, i);
}

/* For n <= 2^30: levels below the root, and the most nodes that consecutive rows fold into. */
enum { KEEL_TREE_LEVELS_MAX = 30, KEEL_TREE_NODES_MAX = 2 * KEEL_TREE_LEVELS_MAX };

static inline int keel_tree_levels(int64_t n)
{
    int levels = 0;
    while ((int64_t)1 << levels < n) levels++;
    return levels;
}

/* The most nodes that consecutive rows of a step of up to n rows fold into. */
static inline int keel_tree_nodes(int64_t n)
{
    return n < 3 ? 1 : 2 * keel_tree_levels(n) - 2;
}

/* The end of the largest node that begins at `row` and ends at `end` or before; row < end <= n. */
int64_t keel_tree_next(int64_t n, int64_t row, int64_t end);

/* Nodes are added one after another, upward or downward, until they fill [begin, end). Returns the
 * number of larger nodes in that range that become complete with the node [first, next). */
int keel_tree_closes(int64_t n, int64_t first, int64_t next, int64_t begin, int64_t end,
                     bool upward);

#endif

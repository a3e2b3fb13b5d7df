/* How a step's rows are cut, and the tree in whose order everything that belongs to them is added.
 *
 * The root holds all n rows. A node of two rows or more has two children, which meet where the cut
 * of the step into twice as many parts has a border (keel_cut_first); so shards are nodes, too. A
 * node of one row is a leaf. Whoever has rows [begin, end) folds them into the largest nodes that
 * lie inside, at most 2 log2 n of them, and whoever adds those up takes them in the same pairs:
 * every sum is made of the same additions, wherever the rows are cut. Six rows:
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

/* How a step of n rows is cut (rule 1): shard i of S is [ceil(i n / S), ceil((i + 1) n / S)), so
 * that sizes differ by at most one, and cuts are nested: where two lanes meet, four lanes meet as
 * well. n <= 2^40. */
static inline int64_t keel_cut_first(int64_t n, int64_t parts, int64_t i)
{
    return keel_div_up(i * n, parts);
}
static inline int64_t keel_cut_rows(int64_t n, int64_t parts, int64_t i)
{
    return keel_cut_first(n, parts, i + 1) - keel_cut_first(n, parts, i);
}

/* n <= 2^30. Levels of the tree below its root, and the most nodes that neighbouring rows fold
 * into. */
enum { KEEL_TREE_LEVELS_MAX = 30, KEEL_TREE_NODES_MAX = 2 * KEEL_TREE_LEVELS_MAX };

static inline int keel_tree_levels(int64_t n)
{
    int levels = 0;
    while ((int64_t)1 << levels < n) levels++;
    return levels;
}

/* The most nodes that neighbouring rows of a step of up to n rows fold into. */
static inline int keel_tree_nodes(int64_t n)
{
    return n < 3 ? 1 : 2 * keel_tree_levels(n) - 2;
}

/* The end of the largest node that begins at `row` and does not go beyond `end`; row < end <= n. */
int64_t keel_tree_next(int64_t n, int64_t row, int64_t end);

/* Nodes come one after another, upward or downward, and fill [begin, end). How many larger nodes
 * inside that range are complete once the node [first, next) has come? */
int keel_tree_closes(int64_t n, int64_t first, int64_t next, int64_t begin, int64_t end,
                     bool upward);

#endif

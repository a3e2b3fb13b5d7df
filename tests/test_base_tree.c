/* The order of additions: whatever the cut, every sum is made of the same pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/tree.h"

enum { ROWS = 300 };

/* What was added to what: not commutative, not associative. */
static uint64_t pair(uint64_t left, uint64_t right)
{
    uint64_t h = left * 0x9e3779b97f4a7c15u + (right ^ right >> 29) * 0xbf58476d1ce4e5b9u + 1;
    return h ^ h >> 31;
}

typedef struct fold {
    int count;
    int64_t first[ROWS], next[ROWS];
    uint64_t value[ROWS];
} fold;

/* Take the node [first, next) in: the stack holds what is complete so far of [begin, end). */
static void take(fold *f, int64_t n, int64_t first, int64_t next, uint64_t value, int64_t begin,
                 int64_t end, bool upward)
{
    f->first[f->count] = first;
    f->next[f->count] = next;
    f->value[f->count++] = value;
    for (int c = keel_tree_closes(n, first, next, begin, end, upward); c > 0; c--) {
        const int a = f->count - 2, b = f->count - 1, left = upward ? a : b, right = upward ? b : a;
        assert_true(a >= 0);
        assert_int_equal(f->next[left], f->first[right]);
        f->value[a] = pair(f->value[left], f->value[right]);
        const int64_t from = f->first[left], to = f->next[right];
        f->first[a] = from;
        f->next[a] = to;
        f->count--;
    }
}

/* The same by its definition. */
static uint64_t by_halves(int64_t n, int level, int64_t index)
{
    const int64_t parts = (int64_t)1 << level, first = keel_cut_first(n, parts, index);
    const int64_t next = keel_cut_first(n, parts, index + 1);
    if (next - first == 1) return (uint64_t)first;
    assert_true(next - first > 1); /* no node is empty */
    return pair(by_halves(n, level + 1, 2 * index), by_halves(n, level + 1, 2 * index + 1));
}

/* Rows cut at border[0..parts], each part folded upward or downward, then all parts' nodes. */
static uint64_t fold_cut(int64_t n, const int64_t *border, int parts, unsigned downward)
{
    static fold all, part;
    all.count = 0;
    for (int p = 0; p < parts; p++) {
        const int64_t begin = border[p], end = border[p + 1];
        const bool upward = !(downward >> p & 1);
        part.count = 0;
        for (int64_t i = 0; i < end - begin; i++) {
            const int64_t row = upward ? begin + i : end - 1 - i;
            take(&part, n, row, row + 1, (uint64_t)row, begin, end, upward);
            assert_true(part.count <= keel_tree_nodes(n));
        }
        int64_t row = begin;
        for (int i = 0; i < part.count; i++) {
            const int k = upward ? i : part.count - 1 - i;
            assert_int_equal(part.first[k], row);
            assert_int_equal(keel_tree_next(n, row, end), part.next[k]);
            row = part.next[k];
            take(&all, n, part.first[k], part.next[k], part.value[k], 0, n, true);
        }
        assert_int_equal(row, end);
    }
    assert_int_equal(all.count, 1);
    return all.value[0];
}

static void every_cut_adds_the_same_pairs(void **unused)
{
    (void)unused;
    uint32_t state = 1;
    for (int64_t n = 1; n <= ROWS; n = n < 70 ? n + 1 : n + 23) {
        const uint64_t want = by_halves(n, 0, 0);
        int64_t border[ROWS + 1];
        for (int parts = 1; parts <= 17; parts++) { /* workers' cuts */
            for (int p = 0; p <= parts; p++) border[p] = keel_cut_first(n, parts, p);
            assert_true(fold_cut(n, border, parts, (unsigned)parts * 5) == want);
        }
        for (int64_t a = 0; a <= n; a++) { /* every single cut, both ways */
            border[0] = 0, border[1] = a, border[2] = n;
            assert_true(fold_cut(n, border, 2, (unsigned)a & 3) == want);
        }
        for (int round = 0; round < 20; round++) {
            int parts = 0;
            border[0] = 0;
            while (border[parts] < n) {
                state = state * 1664525u + 1013904223u;
                const int64_t next = border[parts] + 1 + (state >> 8) % (uint32_t)n;
                border[++parts] = next < n ? next : n;
            }
            assert_true(fold_cut(n, border, parts, state >> 3) == want);
        }
    }
}

static void shards_are_nodes(void **unused)
{
    (void)unused;
    for (int64_t n = 1; n <= ROWS; n++)
        for (int64_t shards = 1; shards <= 64; shards *= 2)
            for (int64_t i = 0; i < shards; i++) {
                const int64_t first = keel_cut_first(n, shards, i);
                const int64_t next = keel_cut_first(n, shards, i + 1);
                if (next > first) assert_int_equal(keel_tree_next(n, first, next), next);
            }
}

static void the_largest_step_has_a_tree(void **unused)
{
    (void)unused;
    const int64_t n = ((int64_t)1 << KEEL_TREE_LEVELS_MAX) - 1;
    int nodes = 0;
    for (int64_t row = 1; row < n - 1; nodes++) row = keel_tree_next(n, row, n - 1);
    assert_true(nodes <= keel_tree_nodes(n) && nodes <= KEEL_TREE_NODES_MAX);
    assert_int_equal(keel_tree_closes(n, n - 1, n, 0, n, true), KEEL_TREE_LEVELS_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_adds_the_same_pairs),
        cmocka_unit_test(shards_are_nodes),
        cmocka_unit_test(the_largest_step_has_a_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

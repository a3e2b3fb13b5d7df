/* See _lookup.h. The table uses open addressing over a keyed hash, so a file cannot choose words
 * that all fall into one place. Numbers are looked up by their bytes. */
#define _GNU_SOURCE /* getentropy */
#include "layers/preprocessing/_lookup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { ENTRIES_MAX = 1 << 28, SHOWN_BYTES = 60 };

struct keel_lookup {
    int64_t count, first; /* entries without special ones, and the index of the first */
    keel_string *entry;   /* [count] */
    char *bytes;          /* of the entries */
    uint64_t key[2], mask;
    int32_t *slot; /* [mask + 1]: an entry's number + 1; 0: free */
    float *idf;    /* [depth]; NULL: none, or not read yet */
    char *asset;   /* the file from which it was read; NULL: the config */
    size_t asset_bytes;
};

static bool has_mask(const keel_lookup_args *a)
{
    return a->texts ? a->mask_token != NULL : a->mask_number != KEEL_INT_NULL;
}

/* The first bucket for entries that are not in the vocabulary. */
static int64_t oov_first(const keel_lookup_args *a)
{
    return has_mask(a) && a->output_mode == KEEL_CATEGORY_INT;
}

/* ---- the table --------------------------------------------------------------------------------
 */

static bool same(const keel_string *a, const void *data, size_t n_bytes)
{
    return (size_t)a->n_bytes == n_bytes && !memcmp(a->data, data, n_bytes);
}

/* Where an entry is, or would be. */
static uint64_t place_of(const keel_lookup *t, const void *data, size_t n_bytes)
{
    uint64_t i = keel_siphash(t->key, data, n_bytes) & t->mask;
    while (t->slot[i] && !same(&t->entry[t->slot[i] - 1], data, n_bytes)) i = (i + 1) & t->mask;
    return i;
}

static int64_t find(const keel_lookup *t, const void *data, size_t n_bytes)
{
    return (int64_t)t->slot[place_of(t, data, n_bytes)] - 1;
}

static void destroy(keel_lookup *t)
{
    if (!t) return;
    keel_free(t->entry);
    keel_free(t->bytes);
    keel_free(t->slot);
    keel_free(t->idf);
    keel_free(t->asset);
    keel_free(t);
}

/* An entry in a message. */
static const char *shown(char out[96], bool texts, const keel_string *s)
{
    int64_t number = 0;
    if (texts) {
        const int n = s->n_bytes < SHOWN_BYTES ? (int)s->n_bytes : SHOWN_BYTES;
        snprintf(out, 96, "'%.*s'", n, n ? s->data : "");
    } else {
        memcpy(&number, s->data, sizeof number);
        snprintf(out, 96, "%lld", (long long)number);
    }
    return out;
}

static keel_string text_of(const char *s)
{
    return (keel_string){ s, s ? (int64_t)strlen(s) : 0 };
}

static keel_string mask_of(const keel_lookup_args *a)
{
    return a->texts ? text_of(a->mask_token)
                    : (keel_string){ (const char *)&a->mask_number, sizeof a->mask_number };
}

static keel_string oov_of(const keel_lookup_args *a)
{
    return a->texts ? text_of(a->oov_token)
                    : (keel_string){ (const char *)&a->oov_number, sizeof a->oov_number };
}

/* Whether the vocabulary begins with all special entries, which are then not words of it. */
static bool begins_special(const keel_lookup_args *a, const keel_string *v, int64_t n)
{
    const int64_t masks = oov_first(a), special = masks + a->num_oov_indices;
    const bool has_oov = a->texts ? a->oov_token != NULL : a->oov_number != KEEL_INT_NULL;
    if (n < special || (a->num_oov_indices && !has_oov)) return false;
    for (int64_t i = 0; i < special; i++) {
        const keel_string s = i < masks ? mask_of(a) : oov_of(a);
        if (!same(&s, v[i].data, (size_t)v[i].n_bytes)) return false;
    }
    return true;
}

/* Puts copies of the entries into the table. */
static keel_status fill(keel_lookup *t, bool texts, const keel_string *v, int64_t n)
{
    char text[96];
    size_t size = 0, at = 0;
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)n) slots *= 2;
    for (int64_t i = 0; i < n; i++) size += (size_t)v[i].n_bytes;
    t->entry = keel_calloc((size_t)n + 1, sizeof *t->entry);
    t->bytes = keel_calloc(size + 1, 1);
    t->slot = keel_calloc(slots, sizeof *t->slot);
    if (!t->entry || !t->bytes || !t->slot) return KEEL_ENOMEM;
    t->mask = slots - 1;
    if (getentropy(t->key, sizeof t->key)) t->key[0] = (uint64_t)(keel_seconds() * 1e9);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t place = place_of(t, v[i].data, (size_t)v[i].n_bytes);
        if (t->slot[place])
            return keel_fail(KEEL_EARG, "vocabulary: %s is in it twice", shown(text, texts, &v[i]));
        if (v[i].n_bytes) memcpy(t->bytes + at, v[i].data, (size_t)v[i].n_bytes);
        t->entry[i] = (keel_string){ t->bytes + at, v[i].n_bytes };
        at += (size_t)v[i].n_bytes;
        t->slot[place] = (int32_t)(i + 1);
        t->count++;
    }
    return KEEL_OK;
}

static keel_status check_entries(const keel_lookup_args *a, const keel_lookup *t)
{
    char text[96];
    const keel_string mask = mask_of(a), oov = oov_of(a);
    if (has_mask(a) && find(t, mask.data ? mask.data : "", (size_t)mask.n_bytes) >= 0)
        return keel_fail(KEEL_EARG,
                         "vocabulary: the mask token %s is in it; leave special entries out, or "
                         "put all of them at its begin",
                         shown(text, a->texts, &mask));
    if (a->invert && find(t, oov.data, (size_t)oov.n_bytes) >= 0)
        return keel_fail(KEEL_EARG,
                         "vocabulary: the token %s for what is not in it is in it; leave special "
                         "entries out, or put all of them at its begin",
                         shown(text, a->texts, &oov));
    if (a->max_tokens != KEEL_INT_NULL && t->first + t->count > a->max_tokens)
        return keel_fail(KEEL_EARG,
                         "vocabulary: with %lld special entries it has %lld, and max_tokens is "
                         "%lld",
                         (long long)t->first, (long long)(t->first + t->count),
                         (long long)a->max_tokens);
    return KEEL_OK;
}

/* How many numbers a sample has if the output is not indices. */
static int64_t depth_of(const keel_lookup_args *a)
{
    if (a->pad_to_max_tokens) return a->max_tokens;
    return a->table ? a->table->first + a->table->count : a->vocabulary_size;
}

/* Checks that the size in the file, with which shapes were made, is that of the vocabulary. */
static keel_status check_size(const keel_lookup_args *a, const keel_lookup *t)
{
    const int64_t size = t->first + t->count;
    const bool any = a->output_mode == KEEL_CATEGORY_INT || a->pad_to_max_tokens;
    if (any || a->vocabulary_size == KEEL_INT_NULL || a->vocabulary_size == size) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "vocabulary: with special entries it has %lld, not the %lld of "
                     "vocabulary_size",
                     (long long)size, (long long)a->vocabulary_size);
}

/* Special entries without weights get the mean of the others; padding gets 0. */
static keel_status take_idf(const keel_lookup_args *a, keel_lookup *t, int64_t n, bool special)
{
    const int64_t front = special ? 0 : t->first;
    const int64_t depth = a->pad_to_max_tokens ? a->max_tokens : t->first + t->count;
    double mean = 0;
    if (a->output_mode != KEEL_CATEGORY_TF_IDF) return KEEL_OK;
    if (!(t->idf = keel_calloc((size_t)depth, sizeof *t->idf))) return KEEL_ENOMEM;
    if (!a->idf_weights) return KEEL_OK; /* in the file of weights */
    if (json_array_size(a->idf_weights) != (size_t)n)
        return keel_fail(KEEL_EARG, "idf_weights: %zu for a vocabulary of %lld",
                         json_array_size(a->idf_weights), (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const json_t *w = json_array_get(a->idf_weights, (size_t)i);
        if (!json_is_number(w) || !isfinite(json_number_value(w)))
            return keel_fail(KEEL_EARG, "idf_weights: %lld is no number", (long long)i);
        t->idf[front + i] = (float)json_number_value(w);
        mean += json_number_value(w) / (double)n;
    }
    for (int64_t i = 0; i < front; i++) t->idf[i] = (float)mean;
    return KEEL_OK;
}

static keel_status make(keel_lookup **out, const keel_lookup_args *a, const keel_string *v,
                        int64_t n)
{
    keel_status s;
    if (n < 1) return keel_fail(KEEL_EARG, "vocabulary: it is empty");
    if (n > ENTRIES_MAX)
        return keel_fail(KEEL_EUNSUP, "vocabulary: %lld entries; at most %d are supported",
                         (long long)n, ENTRIES_MAX);
    keel_lookup *t = keel_calloc(1, sizeof *t);
    if (!t) return KEEL_ENOMEM;
    t->first = oov_first(a) + a->num_oov_indices;
    const bool special = begins_special(a, v, n);
    const int64_t skip = special ? t->first : 0;
    if ((s = fill(t, a->texts, v + skip, n - skip)) < 0) goto out;
    if ((s = check_entries(a, t)) < 0) goto out;
    if ((s = check_size(a, t)) < 0) goto out;
    if ((s = take_idf(a, t, n, special)) < 0) goto out;
    *out = t;
    t = NULL;
out:
    destroy(t);
    return s;
}

/* ---- arguments --------------------------------------------------------------------------------
 */

/* The vocabulary of a config as bytes; numbers are written to `number` [n]. */
static keel_status read_list(const json_t *list, bool texts, keel_string *v, int64_t *number)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i);
        if (texts ? !json_is_string(e) : !json_is_integer(e))
            return keel_fail(KEEL_EARG, "vocabulary: entry %zu is no %s", i,
                             texts ? "text" : "whole number");
        if (texts) {
            v[i] = (keel_string){ json_string_value(e), (int64_t)json_string_length(e) };
        } else {
            number[i] = json_integer_value(e);
            v[i] = (keel_string){ (const char *)&number[i], sizeof *number };
        }
    }
    return KEEL_OK;
}

static keel_status check_args(const keel_lookup_args *a)
{
    const bool tf_idf = a->output_mode == KEEL_CATEGORY_TF_IDF;
    if (a->pad_to_max_tokens && a->max_tokens == KEEL_INT_NULL)
        return keel_fail(KEEL_EARG, "pad_to_max_tokens needs max_tokens");
    if (a->invert && a->output_mode != KEEL_CATEGORY_INT)
        return keel_fail(KEEL_EARG, "invert goes with output_mode 'int' only");
    if (a->invert && a->oov_number == KEEL_INT_NULL)
        return keel_fail(KEEL_EARG, "invert needs an oov_token, for indices that have no entry");
    if (a->idf_weights && !tf_idf)
        return keel_fail(KEEL_EARG, "idf_weights go with output_mode 'tf_idf' only");
    if (tf_idf && a->vocabulary && !a->idf_weights)
        return keel_fail(KEEL_EARG, "output_mode 'tf_idf' needs idf_weights with the vocabulary");
    if (!a->salt) return KEEL_OK;
    if (!a->texts && a->oov_method == 0)
        return keel_fail(KEEL_EARG, "salt goes with oov_method 'farmhash' only");
    if (json_array_size(a->salt) != 2 || !json_is_integer(json_array_get(a->salt, 0)) ||
        !json_is_integer(json_array_get(a->salt, 1)))
        return keel_fail(KEEL_EARG, "salt: expected two whole numbers");
    return KEEL_OK;
}

keel_status keel_lookup_ready(keel_lookup_args *a, const char *layer)
{
    keel_status s = check_args(a);
    if (s >= 0) s = keel_categories_sparse(a->sparse, a->output_mode);
    const size_t n = json_array_size(a->vocabulary);
    keel_string *v = NULL;
    int64_t *number = NULL;
    if (s < 0 || !a->vocabulary) goto out;
    v = keel_calloc(n + 1, sizeof *v);
    number = keel_calloc(a->texts ? 1 : n + 1, sizeof *number);
    if (!v || !number)
        s = KEEL_ENOMEM;
    else if ((s = read_list(a->vocabulary, a->texts, v, number)) >= 0)
        s = make(&a->table, a, v, (int64_t)n);
    if (s >= 0) a->vocabulary_size = a->table->first + a->table->count;
out:
    keel_free(v);
    keel_free(number);
    return s < 0 && s != KEEL_ENOMEM ? keel_fail_within(s, "%s", layer) : s;
}

void keel_lookup_release(void *args)
{
    keel_lookup_args *a = args;
    destroy(a->table);
    a->table = NULL;
}

/* ---- assets -----------------------------------------------------------------------------------
 */

/* The length of the line end at p, as in Python's splitlines; 0: no line end. */
static size_t line_end(const char *p, size_t n)
{
    const unsigned char *b = (const unsigned char *)p;
    if (n > 1 && b[0] == '\r' && b[1] == '\n') return 2;
    if ((b[0] >= '\n' && b[0] <= '\r') || (b[0] >= 0x1c && b[0] <= 0x1e)) return 1;
    if (n > 1 && b[0] == 0xc2 && b[1] == 0x85) return 2;
    if (n > 2 && b[0] == 0xe2 && b[1] == 0x80 && (b[2] == 0xa8 || b[2] == 0xa9)) return 3;
    return 0;
}

/* Splits lines into v (NULL: only counts them) and returns their number. */
static int64_t split(const char *text, size_t n, keel_string *v)
{
    int64_t lines = 0;
    size_t begin = 0;
    for (size_t at = 0; at < n;) {
        const size_t end = line_end(text + at, n - at);
        if (!end && ++at < n) continue;
        if (v) v[lines] = (keel_string){ text + begin, (int64_t)(at - begin) };
        lines++;
        begin = at += end;
    }
    return lines;
}

/* Integers as Python's int() reads them, within int64_t. */
static keel_status to_numbers(keel_string *v, int64_t n, int64_t *number)
{
    for (int64_t i = 0; i < n; i++) {
        const char *p = v[i].data, *end = p + v[i].n_bytes;
        const bool minus = p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+')) p++;
        bool good = p < end;
        number[i] = 0;
        for (; good && p < end; p++)
            good = *p >= '0' && *p <= '9' && !__builtin_mul_overflow(number[i], 10, &number[i]) &&
                   !__builtin_add_overflow(number[i], minus ? '0' - *p : *p - '0', &number[i]);
        if (!good) return keel_fail(KEEL_EFORMAT, "line %lld is no whole number", (long long)i + 1);
        v[i] = (keel_string){ (const char *)&number[i], sizeof *number };
    }
    return KEEL_OK;
}

static keel_status check_utf8(const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        const int more = keel_utf8_next(text + at, n - at, NULL);
        if (!more) return keel_fail(KEEL_EFORMAT, "byte %zu is no text in UTF-8", at);
        at += (size_t)more;
    }
    return KEEL_OK;
}

keel_status keel_lookup_read_asset(void *args, const char *text, size_t n)
{
    keel_lookup_args *a = args;
    keel_status s;
    keel_lookup *t = NULL;
    keel_string *v = NULL;
    int64_t *number = NULL;
    char *copy = NULL;
    if ((s = check_utf8(text, n)) < 0) return s;
    int64_t lines = split(text, n, NULL);
    v = keel_calloc((size_t)lines + 1, sizeof *v);
    number = keel_calloc(a->texts ? 1 : (size_t)lines + 1, sizeof *number);
    copy = keel_calloc(n + 1, 1);
    if (!v || !number || !copy) {
        s = KEEL_ENOMEM;
        goto out;
    }
    if (n) memcpy(copy, text, n);
    split(text, n, v);
    while (lines && !v[lines - 1].n_bytes) lines--; /* as Keras does */
    if (!a->texts && (s = to_numbers(v, lines, number)) < 0) goto out;
    if ((s = make(&t, a, v, lines)) < 0) goto out;
    t->asset = copy;
    t->asset_bytes = n;
    copy = NULL;
    destroy(a->table);
    a->table = t;
    a->vocabulary_size = t->first + t->count;
    t = NULL;
out:
    destroy(t);
    keel_free(v);
    keel_free(number);
    keel_free(copy);
    return s;
}

bool keel_lookup_needs_asset(const void *args)
{
    return !((const keel_lookup_args *)args)->vocabulary;
}

bool keel_lookup_asset(const void *args, const char **text, size_t *n_bytes)
{
    const keel_lookup_args *a = args;
    if (!a->table || !a->table->asset) return false;
    *text = a->table->asset;
    *n_bytes = a->table->asset_bytes;
    return true;
}

float *keel_lookup_idf(const void *args, int64_t *n)
{
    const keel_lookup_args *a = args;
    if (!a->table || !a->table->idf) return NULL;
    *n = depth_of(a);
    return a->table->idf;
}

/* ---- looking up -------------------------------------------------------------------------------
 */

static bool is_mask(const keel_lookup_args *a, const keel_string *s)
{
    if (!has_mask(a)) return false;
    const keel_string mask = mask_of(a);
    return same(&mask, s->data ? s->data : "", (size_t)s->n_bytes);
}

/* The bucket of an entry that is not in the vocabulary. */
static int64_t bucket_of(const keel_lookup_args *a, const keel_string *s)
{
    const uint64_t n = (uint64_t)a->num_oov_indices;
    char digits[32];
    keel_string text = *s;
    if (n == 1) return 0;
    if (!a->texts) {
        int64_t number;
        memcpy(&number, s->data, sizeof number);
        if (a->oov_method == 0) {
            const int64_t rest = number % (int64_t)n;
            return rest < 0 ? rest + (int64_t)n : rest;
        }
        text.n_bytes = snprintf(digits, sizeof digits, "%lld", (long long)number);
        text.data = digits;
    }
    return (int64_t)(keel_text_hash(a->salt, &text) % n);
}

keel_status keel_lookup_index(const keel_lookup_args *a, const keel_string *s, int64_t *index)
{
    const keel_lookup *t = a->table;
    char text[96];
    const bool whole = a->output_mode == KEEL_CATEGORY_INT;
    if (is_mask(a, s)) {
        *index = whole ? 0 : KEEL_LOOKUP_SKIPPED;
        return KEEL_OK;
    }
    const int64_t found = find(t, s->data ? s->data : "", (size_t)s->n_bytes);
    if (found < 0 && !a->num_oov_indices)
        return keel_fail(KEEL_EDATA, "%s is not in the vocabulary, and num_oov_indices is 0",
                         shown(text, a->texts, s));
    *index = found >= 0 ? t->first + found : oov_first(a) + bucket_of(a, s);
    return KEEL_OK;
}

/* The entry of an index: invert, for numbers. */
static int64_t entry_of(const keel_lookup_args *a, int64_t index)
{
    const keel_lookup *t = a->table;
    int64_t number = a->oov_number;
    if (index == 0 && oov_first(a)) return a->mask_number;
    if (index >= t->first && index - t->first < t->count)
        memcpy(&number, t->entry[index - t->first].data, sizeof number);
    return number;
}

void keel_lookup_put(const keel_lookup_args *a, int64_t index, int64_t i, const keel_tensor *out)
{
    keel_categories_put(a->output_mode, depth_of(a), index, i, out);
}

void keel_lookup_end(const keel_lookup_args *a, const keel_tensor *out)
{
    const float *idf = a->table->idf;
    if (a->output_mode != KEEL_CATEGORY_TF_IDF) return;
    for (int64_t i = 0, n = depth_of(a); i < n; i++) {
        if (out->dtype == KEEL_FLOAT64)
            ((double *)out->data)[i] *= (double)idf[i];
        else
            ((float *)out->data)[i] *= idf[i];
    }
}

static keel_status run(const void *args, const keel_tensor *in, int n_in, const keel_tensor *out,
                       keel_scratch *scratch)
{
    (void)n_in;
    (void)scratch;
    const keel_lookup_args *a = args;
    if (!a->table) return keel_lookup_missing();
    keel_categories_begin(out);
    for (int64_t i = 0, n = keel_shape_count(&in->shape); i < n; i++) {
        int64_t number = a->texts ? 0 : keel_whole_number_at(in, i), index;
        if (a->invert) {
            ((int64_t *)out->data)[i] = entry_of(a, number);
            continue;
        }
        keel_string s = a->texts ? ((const keel_string *)in->data)[i]
                                 : (keel_string){ (const char *)&number, sizeof number };
        if (!s.data) s.data = ""; /* padding after a row that is shorter than others */
        KEEL_TRY(keel_lookup_index(a, &s, &index));
        keel_lookup_put(a, index, i, out);
    }
    keel_lookup_end(a, out);
    return KEEL_OK;
}

/* ---- emitting ---------------------------------------------------------------------------------
 */

keel_status keel_lookup_missing(void)
{
    return keel_fail(KEEL_EARG, "it has no vocabulary; give it one as the argument vocabulary, or "
                                "adapt it in Keras");
}

keel_status keel_lookup_spec(const keel_lookup_args *a, const keel_shape *in, keel_dtype real,
                             keel_spec *out)
{
    if (!a->table && a->vocabulary_size == KEEL_INT_NULL) return keel_lookup_missing();
    if (a->output_mode != KEEL_CATEGORY_INT && depth_of(a) < 1) return keel_lookup_missing();
    return keel_categories_spec(a->output_mode, depth_of(a), in, real, out);
}

keel_status keel_lookup_emit(keel_emit *e)
{
    const keel_lookup_args *a = e->args;
    const keel_spec *in = keel_emit_in(e, 0);
    keel_spec out;
    if (a->texts != (in->dtype == KEEL_STRING))
        return keel_fail(KEEL_EARG, "it takes %s, and its input is of %s",
                         a->texts ? "texts (an input of dtype 'string')" : "whole numbers",
                         keel_dtype_name(in->dtype));
    KEEL_TRY(keel_lookup_spec(a, &in->shape, e->graph->real, &out));
    if (a->output_mode == KEEL_CATEGORY_INT) e->gives = KEEL_WHOLE_ALWAYS;
    return keel_emit_host(e, run, &out, e->out);
}

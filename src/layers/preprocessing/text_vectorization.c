/* Splits a text into words and looks them up in a vocabulary when rows are read: texts never reach
 * a kernel. As in TensorFlow, lower case and punctuation are those of ASCII. */
#include "base/memory.h"
#include "base/scratch.h"
#include "base/text.h"
#include "layers/preprocessing/_lookup.h"
#include "tensor/shape.h"
#include <string.h>

enum { LOWER_AND_STRIP, LOWER, STRIP }; /* standardize; -1: as it is */
enum { WHITESPACE, CHARACTER };         /* split; -1: each element of a row is a word */
enum { TEXT, WORDS, JOINED };           /* buffers of the reading thread */

typedef struct args_t {
    keel_lookup_args lookup; /* first: the functions of lookups take these args */
    int standardize, split;
    json_t *ngrams; /* n: of 1 to n words; [a, b]: of a words, then of b; NULL: words alone */
    int64_t output_sequence_length;
    char *encoding;
} args_t;

static const keel_field fields[] = {
    KEEL_LOOKUP_OUTPUT_FIELDS,
    KEEL_CHOICE_OR_NULL(args_t, standardize, "\"lower_and_strip_punctuation\"",
                        "lower_and_strip_punctuation|lower|strip_punctuation",
                        "what is done to a text before it is cut; null: nothing"),
    KEEL_CHOICE_OR_NULL(args_t, split, "\"whitespace\"", "whitespace|character",
                        "where a text is cut; null: it is one word"),
    KEEL_EITHER(args_t, ngrams, "null",
                "look up so many words in a row: n: 1 to n; [a, b]: a, and then b"),
    KEEL_INT(args_t, output_sequence_length, "null", 1, 1e9,
             "indices of a text: filled up with 0, or cut off there"),
    KEEL_REFUSE("ragged", "false",
                "its rows differ in length: give output_sequence_length, which pads them"),
    KEEL_STRING(args_t, encoding, "\"utf-8\"", KEEL_ENCODING_HELP),
    { 0 },
};

/* ---- words ------------------------------------------------------------------------------------
 */

static bool is_punctuation(char c)
{
    return c > ' ' && c < 127 && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
           !(c >= 'a' && c <= 'z');
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* `s` as it is looked up, into `to`; returns its end. */
static char *standardize(int how, const keel_string *s, char *to)
{
    const bool lower = how == LOWER || how == LOWER_AND_STRIP;
    const bool strip = how == STRIP || how == LOWER_AND_STRIP;
    for (int64_t i = 0; i < s->n_bytes; i++) {
        const char c = s->data[i];
        if (strip && is_punctuation(c)) continue;
        *to++ = lower && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return to;
}

/* The words of a text; there are at most as many as bytes. */
static keel_status cut(int how, const char *text, const char *end, keel_string *word, int64_t *n)
{
    while (text < end) {
        const char *begin = text;
        if (how == CHARACTER) {
            const int bytes = keel_utf8_next(text, (size_t)(end - text), NULL);
            if (!bytes) return keel_fail(KEEL_EDATA, "a text is not in UTF-8");
            text += bytes;
        } else {
            while (text < end && is_space(*text)) text++;
            begin = text;
            while (text < end && !is_space(*text)) text++;
        }
        if (text > begin) word[(*n)++] = (keel_string){ begin, text - begin };
    }
    return KEEL_OK;
}

/* ---- looking up -------------------------------------------------------------------------------
 */

typedef struct row_t {
    const args_t *a;
    const keel_tensor *out;
    int64_t at, room; /* indices that are there, and how many there may be; -1: any number */
} row_t;

/* All runs of `width` words, with a space between them. */
static keel_status put_runs(row_t *r, const keel_string *word, int64_t n, int64_t width,
                            char *joined)
{
    const keel_lookup_args *a = &r->a->lookup;
    for (int64_t from = 0; from + width <= n && r->at != r->room; from++) {
        keel_string s = word[from];
        char *to = joined;
        for (int64_t i = from; width > 1 && i < from + width; i++) {
            if (i > from) *to++ = ' ';
            if (word[i].n_bytes) memcpy(to, word[i].data, (size_t)word[i].n_bytes);
            to += word[i].n_bytes;
        }
        if (width > 1) s = (keel_string){ joined, to - joined };
        int64_t index;
        KEEL_TRY(keel_lookup_index(a, &s, &index));
        keel_lookup_put(a, index, r->at++, r->out);
    }
    return KEEL_OK;
}

/* The k-th number of words that are looked up together, of n; 0: there are no more. */
static int64_t width(const json_t *ngrams, int64_t n, int64_t k)
{
    if (json_is_array(ngrams)) return json_integer_value(json_array_get(ngrams, (size_t)k));
    return k < n && k < (ngrams ? json_integer_value(ngrams) : 1) ? k + 1 : 0;
}

static keel_status run(const void *args, const keel_tensor *in, int n_in, const keel_tensor *out,
                       keel_scratch *scratch)
{
    (void)n_in;
    const args_t *a = args;
    const keel_string *given = in->data;
    const int64_t n_given = keel_shape_count(&in->shape);
    const bool whole = a->lookup.output_mode == KEEL_CATEGORY_INT;
    row_t r = { .a = a, .out = out, .room = whole ? keel_shape_count(&out->shape) : -1 };
    int64_t bytes = 0, n = 0;
    if (!a->lookup.table) return keel_lookup_missing();
    for (int64_t i = 0; i < n_given; i++) bytes += given[i].n_bytes;
    const size_t most = (size_t)bytes + (size_t)n_given; /* words, and spaces behind them */
    char *text = keel_scratch_reserve(scratch, TEXT, most);
    keel_string *word = keel_scratch_reserve(scratch, WORDS, most * sizeof *word);
    char *joined = keel_scratch_reserve(scratch, JOINED, (size_t)bytes + most);
    if (!text || !word || !joined) return KEEL_ENOMEM;
    for (int64_t i = 0; i < n_given; i++) {
        char *end = standardize(a->standardize, &given[i], text);
        if (a->split >= 0)
            KEEL_TRY(cut(a->split, text, end, word, &n));
        else
            word[n++] = (keel_string){ text, end - text };
        text = end;
    }
    keel_categories_begin(out);
    for (int64_t k = 0, w; (w = width(a->ngrams, n, k)) > 0; k++)
        KEEL_TRY(put_runs(&r, word, n, w, joined));
    keel_lookup_end(&a->lookup, out);
    return KEEL_OK;
}

/* ---- the layer --------------------------------------------------------------------------------
 */

static bool is_width(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) >= 1;
}

static keel_status ready(void *args)
{
    static char nothing[] = "", unknown[] = "[UNK]";
    args_t *a = args;
    keel_lookup_args *l = &a->lookup;
    l->texts = true;
    l->num_oov_indices = 1;
    l->mask_token = nothing; /* not a field, so nobody frees it */
    l->oov_token = unknown;
    bool good = !a->ngrams || json_is_array(a->ngrams) || is_width(a->ngrams);
    for (size_t i = 0; i < json_array_size(a->ngrams); i++)
        good = good && is_width(json_array_get(a->ngrams, i));
    if (!good)
        return keel_fail(KEEL_EARG, "TextVectorization: ngrams must be whole numbers above 0");
    if (l->output_mode != KEEL_CATEGORY_INT && a->output_sequence_length != KEEL_INT_NULL)
        return keel_fail(KEEL_EARG, "TextVectorization: output_sequence_length goes with "
                                    "output_mode 'int' only");
    if (l->output_mode == KEEL_CATEGORY_ONE_HOT)
        return keel_fail(KEEL_EUNSUP, "TextVectorization: output_mode 'one_hot' is not supported: "
                                      "use 'multi_hot'");
    return keel_lookup_ready(l, "TextVectorization");
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in = keel_emit_in(e, 0);
    const keel_shape *shape = &in->shape;
    const bool whole = a->lookup.output_mode == KEEL_CATEGORY_INT;
    keel_shape made = KEEL_SHAPE(a->output_sequence_length);
    keel_spec out;
    if (in->dtype != KEEL_STRING)
        return keel_fail(KEEL_EARG,
                         "it takes texts (an input of dtype 'string'), and its input is of %s",
                         keel_dtype_name(in->dtype));
    if (a->split >= 0 ? keel_shape_count(shape) != 1 : shape->rank != 1)
        return keel_fail(KEEL_ESHAPE, a->split >= 0
                                          ? "it cuts one text, so its input must be of (1,)"
                                          : "with split null its input must have one dim");
    if (whole && a->output_sequence_length == KEEL_INT_NULL) {
        if (a->split >= 0 || a->ngrams)
            return keel_fail(KEEL_EUNSUP, "texts of any number of words are not supported: give "
                                          "output_sequence_length");
        made = *shape;
    }
    if (!whole) made = KEEL_SHAPE(1);
    if (whole) e->gives = KEEL_WHOLE_ALWAYS;
    KEEL_TRY(keel_lookup_spec(&a->lookup, &made, e->graph->real, &out));
    return keel_emit_host(e, run, &out, e->out);
}

const keel_layer keel_layer_text_vectorization = {
    .type = { KEEL_LAYER_HEAD("TextVectorization",
                              "The indices of a text's words in a vocabulary, or which are in it."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready,
              .release = keel_lookup_release },
    KEEL_LOOKUP_LAYER,
    .emit = emit,
    .asset_again = "_lookup_layer",
};

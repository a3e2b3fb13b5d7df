/* Weights of classes from the command line; see class_weights.h. */
#include "class_weights.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int keel_class_weights_read(keel_class_weights *out, const char *text)
{
    size_t n = 1;
    if (!text) return -1;
    out->is_auto = !strcmp(text, "auto");
    if (out->is_auto) return -1;
    for (const char *p = text; *p; p++) n += *p == ',';
    if (!(out->weight = calloc(n, sizeof *out->weight)))
        return keel_complain(EXIT_FAILED, "out of memory");
    for (const char *p = text, *end;; p = end + 1) {
        const double w = keel_decimal(p, &end);
        if (!isfinite(w) || w < 0 || (*end && *end != ','))
            return keel_complain(EXIT_USAGE,
                                 "--class-weight '%.100s'%s: give a number for each class, as "
                                 "1,2.5,1, or auto for classes that weigh the same",
                                 text, strlen(text) > 100 ? " and more" : "");
        out->weight[out->n++] = w;
        if (!*end) return -1;
    }
}

/* 0: the model has no classes, or leaves their number open. */
static int64_t class_count(const keel_model *m)
{
    keel_shape y;
    if (keel_model_output_shape(m, 0, &y) < 0 || y.rank < 1) return 0;
    const int64_t outputs = y.dim[y.rank - 1];
    return outputs == KEEL_DIM_OPEN ? 0 : outputs > 1 ? outputs : 2;
}

int keel_class_weights_check(const keel_class_weights *c, const keel_model *m)
{
    const int64_t classes = class_count(m);
    if (!c->n || !classes || c->n == classes) return -1;
    return keel_complain(EXIT_USAGE, "--class-weight has %lld %s, but the model has %lld %s",
                         (long long)c->n, c->n == 1 ? "number" : "numbers", (long long)classes,
                         classes == 1 ? "class" : "classes");
}

/* Refused before anything is printed: as in Keras they are of the classes of one target. */
static int check_single(const keel_model *m)
{
    const char *first = NULL;
    char a[80], b[80];
    for (int k = 0; k < keel_model_output_count(m); k++) {
        const char *name = keel_model_output_name(m, k);
        if (!keel_model_loss_name(m, k)) continue;
        if (first)
            return keel_complain(EXIT_USAGE,
                                 "--class-weight is for one target, but outputs '%s' and '%s' have "
                                 "losses; give weights of the rows by --sample-weight",
                                 keel_printable(a, sizeof a, first),
                                 keel_printable(b, sizeof b, name));
        first = name;
    }
    return -1;
}

int keel_class_weights_balance(keel_class_weights *c, const keel_model *m, const keel_dataset *data)
{
    enum { SHOWN = 16 };
    const int64_t classes = class_count(m);
    const int code = c->is_auto || c->n ? check_single(m) : -1;
    if (code >= 0) return code;
    if (!c->is_auto) return -1;
    if (!classes)
        return keel_complain(EXIT_USAGE, "--class-weight auto: the model does not say how many "
                                         "classes there are; give a number for each");
    if (!(c->weight = calloc((size_t)classes, sizeof *c->weight)))
        return keel_complain(EXIT_FAILED, "out of memory");
    const keel_status s = keel_dataset_balanced_weights(data, c->weight, classes);
    if (s < 0) return keel_complain_within(s, "--class-weight auto");
    c->n = classes;
    printf("class weights");
    for (int64_t i = 0; i < c->n && i < SHOWN; i++) printf(" %.4g", c->weight[i]);
    puts(c->n > SHOWN ? " ..." : "");
    return -1;
}

void keel_class_weights_free(keel_class_weights *c)
{
    free(c->weight);
}

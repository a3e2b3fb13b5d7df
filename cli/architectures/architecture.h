/* An architecture of `keel new`: a const struct keel_architecture_STEM at the end of
 * cli/architectures/STEM.c; the build collects them. */
#ifndef KEEL_CLI_ARCHITECTURE_H
#define KEEL_CLI_ARCHITECTURE_H
#include <keel/keel.h>

/* A model being built. After a failure all further calls do nothing, so an architecture needs no
 * error checks; `status` is checked once, at the end. */
typedef struct keel_net {
    keel_model *model;
    keel_status status;
    keel_shape input; /* of one row */
    int64_t classes;
    int64_t vocabulary; /* how many tokens there are; 0: rows are no tokens */
    int n_size;         /* of --sizes; 0: not given */
    int64_t size[16];
    double dropout;
} keel_net;

typedef struct keel_architecture {
    const char *name;
    const char *summary;
    const char *takes;  /* what a row is, with an example; NULL: images, where rank is 3 */
    int rank;           /* of one row of the input; 0: any */
    int64_t vocabulary; /* rows are tokens, usually of so many; 0: rows are numbers */
    double scale;       /* of the Rescaling layer for pixels of 0..255 */
    double offset;
    const char *head; /* name of the last layer, a Dense; NULL: build makes it */
    /* From the (rescaled) input to the features that the last layer reads. */
    keel_symbol (*build)(keel_net *n, keel_symbol x);
} keel_architecture;

extern const keel_architecture *const keel_architectures[]; /* sorted; ends with NULL */

/* Call a new layer on one or two symbols. */
keel_symbol keel_net_call(keel_net *n, const char *layer, const keel_arg *args, keel_symbol x);
keel_symbol keel_net_join(keel_net *n, const char *layer, const keel_arg *args, keel_symbol a,
                          keel_symbol b);
/* One that also reads arguments of its call. */
keel_symbol keel_net_call_with(keel_net *n, const char *layer, const keel_arg *args,
                               const keel_arg *with, const keel_symbol *in, int n_in);
keel_symbol keel_net_add(keel_net *n, const char *name, keel_symbol a, keel_symbol b);

/* The input: tokens are whole numbers. */
keel_symbol keel_net_input(keel_net *n);
/* The last layer: softmax over the classes, or for one class a sigmoid. */
keel_symbol keel_net_head(keel_net *n, const char *name, keel_symbol x);

/* Convenience functions: a layer's name is a prefix and a suffix, "conv2_block1" "_1_conv". */
typedef struct keel_conv {
    int64_t filters, kernel, stride; /* filters 0: depthwise; stride 0: 1 */
    bool same;                       /* padding; else valid */
    bool bias;
    const char *activation;  /* NULL: none */
    const char *initializer; /* of the kernel, as JSON; NULL: Keras's default */
    int64_t groups;          /* 0: one */
} keel_conv;

keel_symbol keel_net_conv(keel_net *n, keel_symbol x, const char *prefix, const char *suffix,
                          const keel_conv *c);
keel_symbol keel_net_norm(keel_net *n, keel_symbol x, const char *prefix, const char *suffix,
                          double momentum, double epsilon);
keel_symbol keel_net_activation(keel_net *n, keel_symbol x, const char *prefix, const char *suffix,
                                const char *activation);
keel_symbol keel_net_relu(keel_net *n, keel_symbol x, const char *prefix, const char *suffix);
keel_symbol keel_net_dense(keel_net *n, keel_symbol x, const char *prefix, const char *suffix,
                           int64_t units, const char *activation); /* NULL: none */
keel_symbol keel_net_layer_norm(keel_net *n, keel_symbol x, const char *prefix, const char *suffix,
                                double epsilon);
keel_symbol keel_net_dropout(keel_net *n, keel_symbol x, const char *prefix, const char *suffix,
                             double rate); /* none for 0 */
/* The sum of two tables of `width` numbers: one for each token, one for each place. */
keel_symbol keel_net_token_and_position(keel_net *n, keel_symbol x, int64_t width);
keel_symbol keel_net_pad(keel_net *n, keel_symbol x, const char *name, int top, int bottom,
                         int left, int right);

#endif

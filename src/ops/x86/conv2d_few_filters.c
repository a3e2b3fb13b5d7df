/* Convolutions of images to very few filters: see _few_filters.h. */
#define ARGS keel_conv2d_args
#include "ops/x86/_few_filters.h"

#define VALUE_FILE "ops/x86/_few.h"
#include "ops/x86/_values.h"
#define VALUE_FILE "ops/x86/_few_filters.h"
#include "ops/x86/_values.h"

FEW_FILTERS_KERNEL(conv2d);

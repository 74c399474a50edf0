/* Tests of the small model of tests/models/small.h, and what they do with a group of parameters as a whole.
 *
 *     SMALL_TEST(prefixes_learn, 2)    // s: the model with frozen weights on 2 threads, which is closed behind the test
 *     {
 *         group_draw(&s->d, group, 0.5f);
 *         small_loss(s, true);
 *         small_check_gradients(s, "prefixes, ", group);
 *     }
 */
#pragma once

#include "tests/models/small.h"

/* In the place of a number of threads: with 1, 2 and 3 of them a test sees the same bits. */
enum { ANY_THREADS };

typedef void (*small_body)(struct small *s);
void with_small(size_t threads, small_body body);
#define SMALL_TEST(name, threads)                                                                                      \
    static void name##_with(struct small *s);                                                                          \
    TEST(name)                                                                                                         \
    {                                                                                                                  \
        with_small(threads, name##_with);                                                                              \
    }                                                                                                                  \
    static void name##_with(struct small *s)

/* Features [count, embed] of other prompts, with the hooks and routers of the model, on the host. */
const float *small_encode_texts(struct small *s, const int32_t *tokens, size_t count, bool training);

void group_draw(struct device *d, struct parameters *group, float deviation); /* all values: normal numbers */
void digest_gradients(struct device *d, const struct parameters *group);

/* Every tensor along its gradient of the loss (check_gradient); `of` stands before its name. */
void check_gradients(struct device *d, const char *of, struct parameters *group, float (*loss)(void *context),
                     void *context);
void small_check_gradients(struct small *s, const char *of,
                           struct parameters *group); /* but of logit_scale and _bias */

/* The tensors have these values, bit for bit, or those of another group; what lies between two of them belongs to none. */
void expect_group(struct device *d, const struct parameters *group, const float *expected);
void expect_same_group(struct device *d, const struct parameters *found, const struct parameters *expected);

/* Groups of which one has a tensor once for a run of blocks, the other for each block ("3.c_fc.weight" → "2.c_fc.weight"): gives
 * each block its own copy; and the gradient of the one is the sum of those of the others. A run of 1: tensors of the same name. */
void group_spread(struct device *d, const struct parameters *shared, struct parameters *apart, size_t run);
void expect_sums_of_gradients(struct device *d, const struct parameters *shared, const struct parameters *apart,
                              size_t run, double tolerance);

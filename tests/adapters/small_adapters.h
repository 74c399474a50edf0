/* The small model of tests/models/small.h with adapters beside both towers.
 *
 *     struct small s;
 *     struct adapters *adapters = small_adapters_open(&s, 2, "top_k=3 dropout=0.25");  // random, router 1, hooks set
 *     float loss = small_loss(&s, true);
 *     small_adapters_close(&s, adapters);
 */
#pragma once

#include "core/option.h"
#include "tests/adapters/adapters.h"
#include "tests/models/clip/groups.h"

enum { SMALL_TASKS = 3, SMALL_TASK = 1, SMALL_EXPERTS = 5, SMALL_TOP_K = 2 };
extern const struct update_rule small_rule;

/* Keys of section adapter over those of the small adapters: 5 experts of 8 hidden units, or, with kind=ffn, in the place of the MLPs,
 * of which 2 are chosen. */
struct adapter_settings small_settings_of(const char *words);

struct options *small_options(const struct option *table, const char *words); /* the caller destroys them */

/* Of settings in words. Values are normal numbers, none zero; every sample has router SMALL_TASK. */
struct adapters *small_adapters_open(struct small *s, size_t threads, const char *words);
void small_adapters_close(struct small *s, struct adapters *adapters);

/* A test with the small model and adapters on so many threads, or ANY_THREADS, s and adapters, which are closed behind it: once per
 * form of a table, or of one form. */
typedef void (*adapters_body)(struct small *s, struct adapters *adapters);
void with_adapters(size_t threads, const char *const *forms, size_t count, adapters_body body);
#define ADAPTERS_TEST_OF(name, threads, forms)                                                                         \
    static void name##_with(struct small *s, struct adapters *adapters);                                               \
    TEST(name)                                                                                                         \
    {                                                                                                                  \
        with_adapters(threads, forms, sizeof(forms) / sizeof *(forms), name##_with);                                   \
    }                                                                                                                  \
    static void name##_with(__attribute__((unused)) struct small *s, __attribute__((unused)) struct adapters *adapters)
#define ADAPTERS_TEST(name, threads, form)                                                                             \
    static const char *const name##_form[] = {form};                                                                   \
    ADAPTERS_TEST_OF(name, threads, name##_form)

/* More of them in a model that is open; the caller destroys them. */
struct adapters *small_adapters_add(struct small *s, const struct adapter_settings *settings);

/* Puts these into the model's blocks. */
void small_adapters_use(struct small *s, const struct adapters *adapters);

/* Every tensor of both towers, stacked ones whole, along its gradient of the loss. */
void small_adapters_check_gradients(struct small *s, struct adapters *adapters);
/* The same once per row of a table of forms, whose number of values must be what it was said to be; and a step. */
void small_adapters_check(struct small *s, struct adapters *adapters);
#define GRADIENTS_TEST(forms)                                                                                          \
    ADAPTERS_TEST_OF(gradients_match_differences, 2, forms)                                                            \
    {                                                                                                                  \
        small_adapters_check(s, adapters);                                                                             \
    }

/* Gives every sample of a tower its router; [batch of the tower] */
void small_set_routers(struct small *s, enum tower tower, const int32_t *routers);

/* A tower's values, or what lies beside them, on the host: expert `expert` of the stacked parameter `index`. */
struct expert_slice {
    size_t offset, size; /* in the group's values */
};
struct expert_slice expert_slice(const struct adapters *adapters, enum tower tower, size_t index, size_t expert);
const float *slice_values(struct small *s, const struct adapters *adapters, enum tower tower,
                          struct expert_slice slice);
/* The number of a tensor of a block's experts in the tower's group, by part: W_down, b_down, W_up, b_up. */
size_t expert_tensor(const struct adapters *adapters, enum tower tower, size_t block, size_t part);

/* Counts of every block, [E]. */
void small_write_counts(struct adapters *adapters, const int32_t *counts);
int64_t total_of(struct small *s, const int32_t *device, size_t n);

/* A plain reference: what an expert of kind lora adds to y for one token x, [d] each, where these are the tower's values. */
void add_expert(const struct adapters *adapters, const float *values, enum tower tower, size_t block, size_t expert,
                double weight, const float *x, double *y);

/* The standard deviation of the values, or of how far they are from others. */
double deviation(const float *values, const float *around, size_t n);

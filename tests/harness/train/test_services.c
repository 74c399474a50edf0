/* What methods are made of beyond what replay_methods compares (fixtures/methods/finetune: teacher, distillation, mean of
 * weights) and test_protection (penalties). */
#include <stdlib.h>
#include <string.h>

#include "harness/methods/weights/guided.h"
#include "harness/methods/weights/start.h"
#include "tests/models/small.h"

/* More texts than are encoded at a time have the features that each has alone. */
TEST(many_texts_are_each_their_own)
{
    enum { MANY = 600, CONTEXT = 6, EMBED = 8 };
    struct small s;
    struct teacher teacher = {0};
    struct tensor all, one;
    int32_t *tokens = calloc(MANY * CONTEXT, sizeof *tokens);
    small_open(&s, 2, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    must(teacher_open(&teacher, s.clip, &s.d.memory, &error));
    for (int32_t i = 0; i < MANY; i++)
        memcpy(tokens + i * CONTEXT, (int32_t[]){9, i % 9, i / 9 % 9, i / 81 % 9, 10, 0}, CONTEXT * sizeof *tokens);
    must(tensor_take(&all, &s.d.memory, TENSOR_F32, "all", 2, (size_t[]){MANY, EMBED}, &error));
    must(tensor_take(&one, &s.d.memory, TENSOR_F32, "one", 2, (size_t[]){1, EMBED}, &error));
    must(teacher_texts(&teacher, tokens, &all, &s.step, &error));
    assert_int_equal(s.step.used, 0);
    const float *features = from_device(&s.d, all.data, tensor_bytes(&all));
    const int looked_at[] = {0, 255, 256, 511, 512, MANY - 1};
    for (size_t i = 0; i < sizeof looked_at / sizeof *looked_at; i++) {
        must(teacher_texts(&teacher, tokens + looked_at[i] * CONTEXT, &one, &s.step, &error));
        expect_close(&s.d, "text", one.data, doubles(&s.d, features + looked_at[i] * EMBED, EMBED), EMBED, 1e-5);
    }
    free(tokens);
    teacher_close(&teacher);
    small_close(&s);
}

/* A resume file has the mean of weights until it is used. */
DEVICE_TEST(a_mean_ends_with_its_use)
{
    struct parameters *group;
    struct average average = {0};
    size_t index;
    parameters_create(&group, d->backend);
    must(parameters_add(group, "w", 1, (size_t[]){4}, 1, 0, &index, &error));
    must(parameters_allocate(group, &d->memory, PARAMETERS_TRAINED, &error));
    must(average_open(&average, group, &d->memory, &error));
    must(average_start(&average, group, &error));
    must(average_add(&average, group, &error));
    assert_int_equal(average.count, 2);
    must(average_apply(&average, group, 0.8f, &error));
    assert_int_equal(average.count, 0);
    parameters_destroy(group);
}

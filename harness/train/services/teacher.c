#include "harness/train/services/teacher.h"

status teacher_open(struct teacher *teacher, const struct clip *student, struct arena *arena, struct error *error)
{
    TRY(clip_create(&teacher->clip, student->backend, arena, &student->dimensions, PARAMETERS_FROZEN,
                    student->activation, error));
    return teacher_copy(teacher, student, error);
}

void teacher_close(struct teacher *teacher)
{
    clip_destroy(teacher->clip);
    teacher->clip = NULL;
}

/* Both declare the same tensors, so values lie at the same places. */
status teacher_copy(struct teacher *teacher, const struct clip *student, struct error *error)
{
    struct parameters *to = teacher->clip->parameters;
    const struct parameters *from = student->parameters;
    return student->backend->ops->copy(student->backend, parameters_write_all(to), from->values,
                                       from->values_count * sizeof(float), error);
}

static status normalize(const struct teacher *teacher, const struct tensor *features, struct matrix normal,
                        struct error *error)
{
    struct backend *backend = teacher->clip->backend;
    return backend->ops->normalize(backend, &(struct normalize){.x = matrix_of(features), .y = normal}, error);
}

status teacher_texts(const struct teacher *teacher, const int32_t *tokens, const struct tensor *features,
                     struct arena *scratch, struct error *error)
{
    enum { AT_A_TIME = 256 };
    size_t context = teacher->clip->dimensions.context, embed = teacher->clip->dimensions.embed,
           total = features->shape[0];
    struct arena_mark mark = arena_mark(scratch);
    for (size_t first = 0; first < total; first += AT_A_TIME) {
        size_t count = total - first < AT_A_TIME ? total - first : AT_A_TIME;
        struct encoding encoding = {.arena = scratch};
        struct tower_pass pass;
        struct texts texts;
        struct tensor raw;
        arena_release(scratch, mark);
        TRY(texts_create(&texts, teacher->clip, scratch, tokens + first * context, count, error));
        TRY(clip_encode_texts(teacher->clip, &encoding, &texts, &pass, &raw, error));
        TRY(normalize(teacher, &raw, matrix_rows((float *)features->data + first * embed, count, embed), error));
    }
    arena_release(scratch, mark);
    return OK;
}

status teacher_images(const struct teacher *teacher, const struct tensor *images, struct arena *arena,
                      struct tensor *features, struct error *error)
{
    struct encoding encoding = {.arena = arena};
    struct tower_pass pass;
    struct tensor raw;
    TRY(tensor_take(features, arena, TENSOR_F32, "the teacher's image features", 2,
                    (size_t[]){images->shape[0], teacher->clip->dimensions.embed}, error));
    struct arena_mark mark = arena_mark(arena);
    TRY(clip_encode_images(teacher->clip, &encoding, images, &pass, &raw, error));
    TRY(normalize(teacher, &raw, matrix_of(features), error));
    arena_release(arena, mark);
    return OK;
}

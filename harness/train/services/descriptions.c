#include "harness/train/services/descriptions.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "core/text.h"
#include "harness/model/class_features.h"

status descriptions_read(struct json_t **file, const char *path, struct error *error)
{
    TRY(json_read(file, path, FILE_LIMIT, error));
    if (json_is_object(*file))
        return OK;
    return error_set(error, ERROR_FORMAT, "%s: expected an object of classes in JSON, found another value", path);
}

void descriptions_close(struct json_t *file)
{
    json_decref(file);
}

/* The texts of a class. */
struct texts_of_class {
    size_t count;
    int32_t *tokens; /* [count, context] */
    size_t *owners;  /* [count]: numbers of the other classes */
};

static status add_text(struct texts_of_class *t, const struct model *model, const char *class,
                       const json_t *description, size_t owner, struct error *error)
{
    size_t context = model->clip->dimensions.context, tokens;
    SCOPED(text_free) struct text text = {0};
    if (!json_is_string(description))
        return error_set(error, ERROR_FORMAT, "class \"%s\": expected lists of texts for the other classes", class);
    text_add(&text, "%s with %s", class, json_string_value(description));
    GROW(t->owners, t->count);
    t->tokens = xrealloc(t->tokens, array_size(t->count + 1, context * sizeof *t->tokens));
    t->owners[t->count] = owner;
    return tokenizer_encode(model->tokenizer, text.data, t->tokens + t->count++ * context, context, &tokens, error);
}

status descriptions_encode(const struct json_t *file, struct model *model, const char *class, const char *const *names,
                           size_t count, float *pairs, struct error *error)
{
    OWNED size_t *counts = xcalloc(count + 1, sizeof *counts);
    size_t width = model->clip->dimensions.embed;
    const json_t *own = json_object_get(file, class);
    struct texts_of_class t = {0};
    status result = OK;
    for (size_t o = 0; o < count; o++) {
        const json_t *list = json_object_get(own, names[o]);
        for (size_t i = 0; result == OK && i < json_array_size(list); i++, counts[o]++)
            result = add_text(&t, model, class, json_array_get(list, i), o, error);
    }
    if (result == OK && t.count == 0)
        result = error_set(
            error, ERROR_FORMAT,
            "class \"%s\": expected descriptions beside classes of this run, found none; is it the file of these "
            "classes, with their names as here (data.class_names)?",
            class);
    OWNED float *features = xmalloc(array_size(t.count + 1, width * sizeof *features));
    NEXT(result, text_features_host(model, t.tokens, t.count, features, error));
    memset(pairs, 0, count * width * sizeof *pairs);
    for (size_t i = 0; result == OK && i < t.count; i++)
        for (size_t k = 0; k < width; k++)
            pairs[t.owners[i] * width + k] += features[i * width + k] / (float)counts[t.owners[i]];
    free(t.tokens);
    free(t.owners);
    return result;
}

#include "harness/commands/inputs/adapter_choice.h"

#include <limits.h>
#include <string.h>

#include "core/scope.h"
#include "core/text.h"
#include "harness/model/weights.h"
#include "models/files/weights_file.h"

static const struct {
    const char *word;
    int router;
} known[ROUTER_WORDS_ALL] = {
    {"none", ROUTER_NONE}, {"auto", ROUTER_AUTO}, {"own", ROUTER_OWN}, {"position", ROUTER_POSITION}};

static status say_routers(const struct adapter_choice *choice, enum router_words words, const char *found,
                          struct error *error)
{
    SCOPED(text_free) struct text list = {0}, expected = {0};
    for (size_t i = 0; i < (size_t)words; i++)
        text_add(&expected, "%s%s", i > 0 ? ", " : "", known[i].word);
    TRY(saved_adapters_list(&choice->saved, &list, error));
    return error_set(error, ERROR_ARGUMENT,
                     "command line: --adapters %s: expected --router %s or the name or number of a router, one of "
                     "%s; found %s",
                     choice->file, expected.data != NULL ? expected.data : "", list.data != NULL ? list.data : "none",
                     found);
}

/* A reserved word, the name of a trained task, or a number. */
static bool understand(struct adapter_choice *choice, enum router_words words, const char *word)
{
    int64_t number;
    for (size_t i = 0; i < (size_t)words; i++)
        if (strcmp(word, known[i].word) == 0) {
            choice->router = known[i].router;
            return true;
        }
    const struct adapter_metadata *metadata = &choice->saved.metadata;
    int task = adapter_metadata_find(metadata, word);
    if (task >= 0) {
        choice->router = adapter_metadata_router(metadata, (size_t)task);
        return metadata->tasks[task].trained;
    }
    if (!parse_integer(word, &number) || number < 0 || number > SHRT_MAX)
        return false;
    choice->router = (int)number;
    return true;
}

static status check_choice(const struct adapter_choice *choice, struct error *error)
{
    const struct adapter_metadata *metadata = &choice->saved.metadata;
    if (choice->router == ROUTER_AUTO && metadata->selector == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: holds no selector (its run had selector.kind: oracle, or another program wrote it); "
                         "expected --router with one of its routers instead of auto",
                         choice->file);
    if (choice->router != ROUTER_OWN || metadata->task_count > 0)
        return OK;
    SCOPED(text_free) struct text list = {0};
    TRY(saved_adapters_list(&choice->saved, &list, error));
    return error_set(
        error, ERROR_ARGUMENT,
        "%s: does not name the tasks of its routers (another program wrote it, or an older mtil); expected "
        "--router with a number, one of %s, or --router position if router k belongs to the suite's task k",
        choice->file, list.data != NULL ? list.data : "none");
}

static status choose(struct adapter_choice *choice, enum router_words words, const char *word, struct error *error)
{
    if (choice->saved.deltas && word != NULL && strcmp(word, "none") != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: --adapters %s: low-rank deltas, which have no routers; leave out --router %s",
                         choice->file, word);
    if (choice->saved.deltas)
        return OK;
    if (word == NULL && words >= ROUTER_WORDS_AUTO && choice->saved.metadata.selector != NULL)
        word = "auto";
    if (word == NULL && choice->saved.metadata.one_router)
        word = "0";
    if (word == NULL || !understand(choice, words, word))
        return say_routers(choice, words, word != NULL ? word : "no --router", error);
    return check_choice(choice, error);
}

status adapter_choice_read(struct adapter_choice *choice, const struct options *options, enum router_words words,
                           struct error *error)
{
    const char *word = options_text(options, "router");
    *choice = (struct adapter_choice){.file = options_text(options, "adapters"), .router = ROUTER_NONE};
    if (choice->file == NULL && word != NULL && strcmp(word, "none") != 0)
        return error_set(error, ERROR_ARGUMENT, "command line: --router %s: expected --adapters FILE with it", word);
    if (choice->file == NULL)
        return OK;
    TRY(saved_adapters_open(&choice->saved, choice->file, error));
    return choose(choice, words, word, error);
}

void adapter_choice_free(struct adapter_choice *choice)
{
    saved_adapters_close(&choice->saved);
}

static status check(const struct classifier_choice *choice, const char *weights, struct error *error)
{
    size_t tasks = choice->metadata.task_count, named = tasks > 0 ? choice->metadata.tasks[0].classes.count : 0;
    if (choice->about.classes == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: expected a classifier, found an image tower without a head",
                         weights);
    if (tasks > 1 || (tasks == 1 && named != choice->about.classes))
        return error_set(error, ERROR_FORMAT, "%s: names %zu classes of %zu tasks, but its head has %zu classes",
                         weights, named, tasks, choice->about.classes);
    return OK;
}

status classifier_choice_read(struct classifier_choice *choice, const char *weights, const struct clip_stated *stated,
                              struct error *error)
{
    struct vit_stated said = vit_weights_stated(stated);
    *choice = (struct classifier_choice){0};
    TRY(vit_weights_look(&choice->about, &choice->is_one, weights, &said, error));
    if (!choice->is_one)
        return OK;
    TRY(weights_file_open(&choice->file, weights, WEIGHTS_HEADER, error));
    TRY(adapter_metadata_read(&choice->metadata, choice->file, error));
    return check(choice, weights, error);
}

void classifier_choice_free(struct classifier_choice *choice)
{
    adapter_metadata_free(&choice->metadata);
    safetensors_close(choice->file);
    *choice = (struct classifier_choice){0};
}

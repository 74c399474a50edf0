/* mtil classify: a classifier for every dataset of a suite. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/file.h"
#include "harness/commands/inputs/backend_choice.h"
#include "harness/commands/run.h"
#include "harness/run/settings.h"

/* The words for the run of one dataset: defaults that the command line may replace, the command line's words, the
 * dataset. */
struct words {
    const char **list;
    size_t count; /* without the dataset, which follows them */
};

static void gather(struct words *words, const struct suite_words *given)
{
    static const char *const own[] = {"head.name=linear", "method.name=supervised"};
    enum { OWN = sizeof own / sizeof *own };
    *words = (struct words){.list = xcalloc(OWN + given->count + 1, sizeof *words->list)};
    for (size_t i = 0; i < OWN; i++)
        words->list[words->count++] = own[i];
    for (size_t i = 0; i < given->count; i++)
        words->list[words->count++] = given->list[i];
}

static status classify_dataset(const struct command_call *call, const struct words *words, const char *name,
                               struct error *error)
{
    char *order = path_format("data.order=%s", name);
    words->list[words->count] = order;
    status result = run_suite(call, words->list, words->count + 1, error);
    free(order);
    return result;
}

static status classify_all(const struct command_call *call, const struct words *words, struct error *error)
{
    struct suite *suite;
    TRY(suite_load(&suite, call->arguments[0], settings_sections, words->list, words->count, error));
    const struct options *data = suite_options(suite, "data");
    status result = OK;
    for (size_t i = 0; result == OK && i < options_list_size(data, "order"); i++)
        result = classify_dataset(call, words, options_list_item(data, "order", i), error);
    suite_destroy(suite);
    return result;
}

static status run(const struct command_call *call, struct error *error)
{
    struct suite_words given;
    struct words words;
    suite_words_read(&given, call);
    gather(&words, &given);
    status result = classify_all(call, &words, error);
    free(words.list);
    suite_words_free(&given);
    return result;
}

const struct command command_classify = {
    .name = "classify",
    .arguments = "SUITE [key=value…]",
    .summary = "train an image classifier for each dataset of a suite, or resume it",
    .details =
        "Trains an image tower with a linear head on each dataset of data.order by itself, like mtil run with\n"
        "head.name=linear, method.name=supervised and one dataset. model.weights names the tower: a CLIP, a ViT\n"
        "of timm or Hugging Face, the weights of such a run, or scratch for random weights (sizes: mtil list\n"
        "models -v). method.train=head trains the head alone; method.ffn replaces MLPs by mixtures of experts.\n"
        "Stopping, resuming and databases work as in mtil run.\n",
    .example =
        "  mtil classify mini_classify\n  mtil classify mini data.order=eurosat,dtd training.learning_rate=3e-4\n",
    .options = run_command_options,
    .least = 1,
    .most = SIZE_MAX,
    .run = run,
};

/* mtil list: names for suites and command lines. A new kind: one function and one line in kinds. */
#include <string.h>

#include "adapters/merge/combine.h"
#include "datasets/dataset.h"
#include "harness/commands/output.h"
#include "harness/config/library.h"
#include "harness/methods/methods.h"
#include "harness/train/method.h"

static void add_row(struct table *table, const char *name, const char *description)
{
    table_add_text(table, name);
    table_add_text(table, description);
}

static void list_suites(struct table *table)
{
    for (size_t i = 0; i < suite_library_size(); i++) {
        struct shipped_suite suite = suite_library_get(i);
        add_row(table, suite.name, suite.summary);
    }
}

static void list_policies(struct table *table)
{
    const struct merge_policy *policy;
    for (size_t i = 0; (policy = merge_policy_at(i)) != NULL; i++)
        add_row(table, policy->name, policy->source);
}

static void list_combiners(struct table *table)
{
    const struct merge_combiner *combiner;
    for (size_t i = 0; (combiner = merge_combiner_at(i)) != NULL; i++)
        add_row(table, combiner->name, combiner->source);
}

static void list_datasets(struct table *table)
{
    size_t count;
    const struct dataset_reader *const *readers = dataset_readers(&count);
    for (size_t i = 0; i < count; i++)
        add_row(table, readers[i]->name, readers[i]->source);
}

static void list_methods(struct table *table)
{
    const struct method *method;
    for (size_t i = 0; (method = method_at(i)) != NULL; i++)
        add_row(table, method->name, method->source);
}

static void list_models(struct table *table)
{
    add_row(table, "mini", "64 pixels, width 128, 4 and 3 blocks; ships with the program");
    add_row(table, "PATH", "any CLIP in safetensors, OpenAI's or Hugging Face's names; sizes from its shapes");
}

static const struct kind {
    const char *name, *title;
    void (*list)(struct table *table); /* adds rows of a name and where it comes from or description */
} kinds[] = {
    {"combiners", "source", list_combiners},  {"datasets", "source", list_datasets},
    {"methods", "publication", list_methods}, {"models", "what it is", list_models},
    {"policies", "source", list_policies},    {"suites", "summary", list_suites},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct kind *find_kind(const char *name, struct error *error)
{
    const char *names[KINDS];
    for (size_t i = 0; i < KINDS; i++) {
        names[i] = kinds[i].name;
        if (strcmp(name, names[i]) == 0)
            return &kinds[i];
    }
    error_unknown_word(error, "command line", "kind", name, names, KINDS);
    return NULL;
}

static status run(const struct command_call *call, struct error *error)
{
    const struct kind *kind = find_kind(call->arguments[0], error);
    if (kind == NULL)
        return ERROR_ARGUMENT;
    struct table table = {0};
    table_add_column(&table, &(struct table_column){.title = "name"});
    table_add_column(&table, &(struct table_column){.title = kind->title});
    kind->list(&table);
    status result = output_table(call, &table, error);
    table_free(&table);
    return result;
}

static const struct option options[] = {OUTPUT_FORMAT_OPTION, {0}};

const struct command command_list = {
    .name = "list",
    .arguments = "datasets|methods|models|policies|suites",
    .summary = "list what a suite can name",
    .example = "  mtil list datasets\n",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run,
};

#include "tests/datasets/root.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "datasets/readers/reader.h"
#include "tests/test.h"

struct scratch scratch;

enum { MOST_OPTIONS = 16 };

int root_setup(void **state)
{
    scratch_create(&scratch);
    return chdir(scratch.path);
}

int root_teardown(void **state)
{
    scratch_remove(&scratch);
    return chdir("/");
}

status root_try(struct dataset **dataset, const char *name, const char *root, const char *options,
                const struct log *log, struct error *error)
{
    static const struct option shared[] = {OPTION_SPLIT, OPTION_CLASS_NAMES, OPTION_ON_UNREADABLE};
    struct option table[MOST_OPTIONS + 1] = {0};
    size_t count = 0;
    const struct dataset_reader *reader;
    struct options *set;
    char words[512], *rest;
    snprintf(words, sizeof words, "%s", options != NULL ? options : "");
    assert_int_equal(dataset_reader_find(&reader, name, error), OK);
    for (const struct option *own = reader->options; own != NULL && own->name != NULL && count < MOST_OPTIONS - 3;
         own++)
        table[count++] = *own;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (options_find(table, shared[i].name) == NULL)
            table[count++] = shared[i];
    assert_int_equal(options_create(&set, table, error), OK);
    for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        *value = 0;
        assert_int_equal(options_set(set, word, value + 1, "test", error), OK);
    }
    status result = dataset_open(dataset, name, root, options != NULL ? set : NULL, log, error);
    options_destroy(set);
    return result;
}

struct dataset *root_open(const char *name, const char *root, const char *options)
{
    struct dataset *dataset;
    assert_ok(root_try(&dataset, name, root, options, NULL, &error));
    return dataset;
}

size_t root_count(const struct dataset *dataset, enum split split, size_t label)
{
    size_t count = 0;
    for (size_t i = 0; i < dataset_size(dataset, split); i++)
        count += dataset_label(dataset, split, i) == (int)label;
    return count;
}

static void keep_warning(void *context, enum log_level level, const char *message)
{
    struct root_log *log = context;
    if (level != LOG_WARN)
        return;
    log->warnings++;
    snprintf(log->warning, sizeof log->warning, "%s", message);
}

void root_log_start(struct root_log *log)
{
    *log = (struct root_log){.log = {.write = keep_warning, .context = log, .least = LOG_INFO}};
}

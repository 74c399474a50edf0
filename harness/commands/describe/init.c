/* mtil init: a suite to start from, short or with a comment for every key. */
#include <string.h>

#include "core/file.h"
#include "harness/commands/command.h"
#include "harness/config/keys.h"
#include "harness/run/settings.h"

/* The keys that most suites set; the others are comments. */
static const char *const usual[] = {"model.weights",
                                    "model.vocabulary",
                                    "data.root",
                                    "data.order",
                                    "method.name",
                                    "adapter.experts",
                                    "adapter.top_k",
                                    "merge.policy",
                                    "merge.every",
                                    "training.iterations",
                                    "training.batch",
                                    "training.warmup",
                                    "training.learning_rate",
                                    "run.seeds"};

static bool is_usual(const struct suite_key *key)
{
    size_t length = strlen(key->section->name);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strncmp(usual[i], key->section->name, length) == 0 && usual[i][length] == '.' &&
            strcmp(usual[i] + length + 1, key->option->name) == 0)
            return true;
    return false;
}

static bool has_usual(const struct suite_section *section)
{
    for (const struct option *option = section->options; option->name != NULL; option++)
        if (is_usual(&(struct suite_key){.section = section, .option = option}))
            return true;
    return false;
}

/* The default as YAML. */
static void add_value(struct text *text, const struct option *option)
{
    static const char separators[] = ", ";
    const char *at = option->fallback;
    if (option->type != OPTION_LIST) {
        text_add(text, "%s", *at != 0 ? at : "\"\"");
        return;
    }
    text_add(text, "[");
    for (size_t length; *at != 0; at += length + strspn(at + length, separators)) {
        length = strcspn(at, separators);
        text_add(text, "%s%.*s", at != option->fallback ? ", " : "", (int)length, at);
    }
    text_add(text, "]");
}

static void add_comment(struct text *text, const struct suite_key *key)
{
    struct text range = {0};
    option_add_range(&range, key->option);
    text_add(text, "  # ");
    if (key->with.size > 0)
        text_add(text, "with %s %s: %s: ", key->section->chooser, key->with.data, key->option->name);
    else if (key->option->fallback == NULL)
        text_add(text, "%s: ", key->option->name);
    text_add(text, "%s (%s%s%s", key->option->help, option_type_name(key->option), range.size > 0 ? ", " : "",
             range.size > 0 ? range.data : "");
    if (key->with.size > 0 && key->option->fallback != NULL)
        text_add(text, ", default %s", *key->option->fallback != 0 ? key->option->fallback : "empty");
    text_add(text, ")\n");
    text_free(&range);
}

static void add_section(struct text *text, const struct suite_keys *keys, const struct suite_section *section)
{
    text_add(text, "\n# %s\n", section->about);
    if (section->each_of != NULL) {
        text_add(text, "# %s: {NAME: {KEY: VALUE}}, with names of %s; mtil list keys %s shows the keys\n",
                 section->name, section->each_of, section->name);
        return;
    }
    text_add(text, "%s%s:\n", has_usual(section) ? "" : "#", section->name);
    for (size_t i = 0; i < keys->count; i++) {
        const struct suite_key *key = &keys->list[i];
        if (key->section != section)
            continue;
        add_comment(text, key);
        if (key->with.size > 0 || key->option->fallback == NULL)
            continue;
        text_add(text, "  %s%s: ", is_usual(key) ? "" : "#", key->option->name);
        add_value(text, key->option);
        text_add(text, "\n");
    }
}

static const char own_images[] =
    "# Two tasks of my own images: my/scenes and my/fields have a folder of images for each class\n"
    "model: {weights: mini, vocabulary: mini} # the small CLIP that ships\n"
    "data: {root: my, order: [scenes, fields]}\n"
    "tasks:\n"
    "  scenes: {reader: folder} # in my/scenes\n"
    "  fields: {reader: folder}\n"
    "adapter: {experts: 16}\n"
    "merge: {policy: most_used, every: 10}\n"
    "training: {iterations: 20, batch: 32, learning_rate: 1e-2, warmup: 5}\n";

static status write_every_key(struct text *text, const char *path, struct error *error)
{
    struct suite_keys keys;
    TRY(suite_keys_read(&keys, settings_sections, error));
    text_add(
        text,
        "# What this suite runs, in one line\n# Table: none\n#\n"
        "# mtil run %s --dry-run shows what it comes to, mtil list keys every key.\n"
        "# A key or section right behind a # is one that few suites set, with its default: remove the # to set it.\n",
        path);
    for (const struct suite_section *section = settings_sections; section->name != NULL; section++)
        add_section(text, &keys, section);
    suite_keys_free(&keys);
    return OK;
}

static status check_path(const char *path, struct error *error)
{
    if (strpbrk(path, "/.") == NULL)
        return error_set(
            error, ERROR_ARGUMENT,
            "command line: init: expected a file, as in %s.yaml; a name without a dot is a suite that ships", path);
    if (file_exists(path))
        return error_set(error, ERROR_IO, "init: %s exists; name another file, or remove it", path);
    return OK;
}

static status run(const struct command_call *call, struct error *error)
{
    const char *path = call->argument_count > 0 ? call->arguments[0] : "suite.yaml";
    struct text text = {0};
    TRY(check_path(path, error));
    status result = OK;
    if (options_boolean(call->options, "all"))
        result = write_every_key(&text, path, error);
    else
        text_add(&text, "%s", own_images);
    NEXT(result, file_write(path, text.data, text.size, error));
    text_free(&text);
    if (result == OK)
        log_info(call->log, "%s is written; mtil run %s --dry-run shows what it comes to", path, path);
    return result;
}

static const struct option options[] = {
    {.name = "all", .type = OPTION_BOOLEAN, .fallback = "no", .help = "every key, with its default and a comment"},
    {0}};

const struct command command_init = {
    .name = "init",
    .arguments = "[FILE]",
    .summary = "write a suite to start from",
    .details =
        "FILE is suite.yaml if it is not given, and does not exist yet. The suite trains two tasks of one's own\n"
        "images: each folder below data.root has a folder for each class. With --all it has every key, trains the\n"
        "built-in datasets with the defaults, and keys that few suites set are comments.\n",
    .example = "  mtil init my-suite.yaml\n  mtil run my-suite.yaml --dry-run\n",
    .options = options,
    .most = 1,
    .run = run,
};

/* mtil list: names for suites and command lines. A new kind: one function and one line in kinds. */
#include <string.h>

#include "adapters/merge/policies.h"
#include "adapters/routers/router.h"
#include "core/scope.h"
#include "datasets/dataset.h"
#include "harness/commands/output.h"
#include "harness/config/suite.h"
#include "harness/methods/methods.h"
#include "harness/model/head.h"
#include "harness/model/weights.h"
#include "harness/run/settings.h"
#include "harness/selectors/selector.h"
#include "harness/train/method.h"
#include "models/optimizers/optimizer.h"
#include "results/query/question.h"

/* --- Keys --- */

static void add_name(struct table *table, const struct suite_key *key)
{
    SCOPED(text_free) struct text name = {0};
    text_add(&name, "%s.%s%s", key->section->name, key->section->each_of != NULL ? "NAME." : "", key->option->name);
    table_add_text(table, name.data);
}

static void add_default(struct table *table, const struct suite_key *key)
{
    SCOPED(text_free) struct text text = {0};
    if (key->inherits != NULL)
        text_add(&text, "%s.%s", key->inherits->name, key->option->name);
    else if (key->option->fallback != NULL)
        text_add(&text, "%s", *key->option->fallback != 0 ? key->option->fallback : "\"\"");
    table_add_text(table, text.data);
}

static void add_with(struct table *table, const struct suite_key *key)
{
    SCOPED(text_free) struct text text = {0};
    if (key->with.size > 0)
        text_add(&text, "%s: %s", key->section->chooser, key->with.data);
    table_add_text(table, text.data);
}

static void add_key(struct table *table, const struct suite_key *key)
{
    SCOPED(text_free) struct text range = {0};
    option_add_range(&range, key->option);
    add_name(table, key);
    table_add_text(table, option_type_name(key->option));
    table_add_text(table, range.data);
    add_default(table, key);
    add_with(table, key);
    table_add_text(table, key->option->help);
}

/* Adds the keys of one section, or of all sections (NULL). */
static void fill(struct table *table, const struct suite_keys *keys, const struct suite_section *section)
{
    static const struct {
        const char *title;
        int extra;
    } titles[] = {{"key", 0}, {"type", 1}, {"range", 3}, {"default", 0}, {"with", 2}, {"help", 0}};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(
            table, &(struct table_column){.title = titles[i].title, .align = ALIGN_LEFT, .extra = titles[i].extra});
    for (size_t i = 0; i < keys->count; i++) {
        if (section != NULL && keys->list[i].section != section)
            continue;
        if (i > 0 && keys->list[i].section != keys->list[i - 1].section)
            table_begin_block(table);
        add_key(table, &keys->list[i]);
    }
}

static status print_table(const struct command_call *call, const struct suite_keys *keys,
                          const struct suite_section *section, struct error *error)
{
    SCOPED(table_free) struct table table = {0};
    fill(&table, keys, section);
    return output_chosen(call, &table, error);
}

static status print_page(const struct command_call *call, const struct suite_keys *keys, struct error *error)
{
    fputs("# Keys of a suite\n\n"
          "Made from the program by `mtil list keys --format markdown`. `with` says which value of another key of the "
          "section\nbrings the key; without it the key is always there. A default like `training.batch` is that key's "
          "value. On the\ncommand line a key is `section.key=value`, or `key=value` where one section alone has it and "
          "nothing stands under `with`.\n`rows` holds settings under names, as `run.row` chooses them.\n",
          call->out);
    for (const struct suite_section *section = settings_sections; section->name != NULL; section++) {
        fprintf(call->out, "\n## %s\n\n%c%s", section->name, section->about[0] - 'a' + 'A', section->about + 1);
        if (section->preset_by != NULL)
            fprintf(call->out, "; with `%s` some defaults are those of a paper", section->preset_by);
        fputs(".\n\n", call->out);
        TRY(print_table(call, keys, section, error));
    }
    return OK;
}

static const struct suite_section *find_section(const char *name, struct error *error)
{
    const char *names[32];
    size_t count = 0;
    for (const struct suite_section *s = settings_sections; s->name != NULL && count < 32; s++) {
        if (strcmp(s->name, name) == 0)
            return s;
        names[count++] = s->name;
    }
    error_unknown_word(error, "command line", "section", name, names, count);
    return NULL;
}

/* Every key that a suite may have in a section, from the option tables of their owners. name NULL: in all of them; in
 * Markdown this is harness/suites/KEYS.md. */
static status list_keys(const struct command_call *call, const char *name, struct error *error)
{
    const struct suite_section *section = name != NULL ? find_section(name, error) : NULL;
    if (name != NULL && section == NULL)
        return ERROR_ARGUMENT;
    SCOPED(suite_keys_free) struct suite_keys keys = {0};
    suite_keys_read(&keys, settings_sections);
    bool page = section == NULL && strcmp(options_text(call->options, "format"), "markdown") == 0;
    return page ? print_page(call, &keys, error) : print_table(call, &keys, section, error);
}

/* --- The kinds --- */

/* One thing that a suite can name. NULL: it has none. */
struct entry {
    const char *name, *about, *formula;
    const char *section; /* of its keys: "method." */
    const struct option *options;
};

/* The answer as it grows: a row per entry, or with --verbose a block of rows. */
struct listing {
    struct table table;
    const char *title; /* the second column's title */
    bool verbose;
};

static void close_listing(struct listing *listing)
{
    table_free(&listing->table);
}

static void add_detail(struct listing *listing, const char *name, const char *what, const char *text)
{
    table_add_text(&listing->table, name);
    table_add_text(&listing->table, what);
    table_add_text(&listing->table, text);
}

/* "whole number from 1 to 8, default 2: how many of the most used experts are merged" */
static void describe_option(const struct option *option, struct text *text)
{
    bool ranged = option->minimum < option->maximum;
    if (option->type != OPTION_CHOICE)
        text_add(text, "%s%s", option_type_name(option), ranged ? " from " : "");
    option_add_range(text, option);
    if (option->fallback != NULL)
        text_add(text, ", default %s", *option->fallback != 0 ? option->fallback : "\"\"");
    if (option->help != NULL)
        text_add(text, ": %s", option->help);
}

static void add_options(struct listing *listing, const struct entry *entry)
{
    for (const struct option *option = entry->options; option != NULL && option->name != NULL; option++) {
        SCOPED(text_free) struct text key = {0}, text = {0};
        text_add(&key, "%s%s", entry->section, option->name);
        describe_option(option, &text);
        add_detail(listing, entry->name, key.data, text.data);
    }
}

static void add_entry(struct listing *listing, const struct entry *entry)
{
    if (!listing->verbose) {
        table_add_text(&listing->table, entry->name);
        table_add_text(&listing->table, entry->about);
        return;
    }
    if (table_rows(&listing->table) > 0)
        table_begin_block(&listing->table);
    add_detail(listing, entry->name, listing->title, entry->about);
    if (entry->formula != NULL)
        add_detail(listing, entry->name, "formula", entry->formula);
    add_options(listing, entry);
}

static void list_suites(struct listing *listing)
{
    for (size_t i = 0; i < suite_library_size(); i++) {
        struct shipped_suite suite = suite_library_get(i);
        SCOPED(suite_rows_free) struct suite_rows rows = {0};
        SCOPED(text_free) struct text names = {0};
        add_entry(listing, &(struct entry){.name = suite.name, .about = suite.summary});
        if (!listing->verbose)
            continue;
        add_detail(listing, suite.name, "table", *suite.table != 0 ? suite.table : "none");
        if (suite_load_rows(&rows, suite.name, settings_sections, NULL) != OK)
            continue;
        for (size_t k = 0; k < rows.names.count; k++)
            text_add(&names, "%s%s", k > 0 ? ", " : "", rows.names.items[k]);
        if (rows.names.count > 0)
            add_detail(listing, suite.name, "rows", names.data);
    }
}

/* Of a registry, with the keys that an entry brings to a section. */
/* clang-format off */
#define LIST(kinds, stem, section, keys) \
    static void list_##kinds(struct listing *listing) \
    { \
        const struct stem *entry; \
        for (size_t i = 0; (entry = stem##_at(i)) != NULL; i++) \
            add_entry(listing, &(struct entry){entry->name, entry->source, entry->formula, section, keys}); \
    }
LIST(policies, merge_policy, "merge.", entry->options)
LIST(combiners, merge_combiner, "combine.", entry->options)
LIST(freezing, freeze_policy, "adapter.", entry->options)
LIST(heads, head, "head.", entry->options)
LIST(methods, method, "method.", entry->options)
LIST(experts, expert_kind, NULL, NULL)
LIST(routers, router_kind, NULL, NULL)
LIST(optimizers, optimizer, NULL, NULL)
LIST(selector_kinds, selector_kind, NULL, NULL)
/* clang-format on */

static void list_schedules(struct listing *listing)
{
    const struct merge_schedule *schedule;
    for (size_t i = 0; (schedule = merge_schedule_at(i)) != NULL; i++)
        add_entry(listing, &(struct entry){.name = schedule->name, .about = schedule->help});
}

static void list_datasets(struct listing *listing)
{
    size_t count;
    const struct dataset_reader *const *readers = dataset_readers(&count);
    for (size_t i = 0; i < count; i++)
        add_entry(listing,
                  &(struct entry){readers[i]->name, readers[i]->source, NULL, "tasks.NAME.", readers[i]->options});
}

static void list_models(struct listing *listing)
{
    const struct option *scratch;
    model_choice_keys("scratch", &scratch, NULL);
    add_entry(listing,
              &(struct entry){.name = "mini", .about = "64 pixels, width 128, 4 and 3 blocks; ships with the program"});
    add_entry(listing, &(struct entry){.name = "PATH",
                                       .about = "any CLIP or SigLIP in safetensors, .pt, .pth or .bin; sizes from its "
                                                "shapes"});
    add_entry(listing, &(struct entry){.name = "scratch",
                                       .about = "an image tower of random weights, for head.name linear",
                                       .section = "model.",
                                       .options = scratch});
}

static void list_questions(struct listing *listing)
{
    SCOPED(questions_close) struct questions questions = {0};
    questions_open(&questions, NULL, NULL); /* those that ship can be read */
    for (size_t i = 0; i < questions.count; i++)
        if (*questions.question[i].title != 0)
            add_entry(listing,
                      &(struct entry){.name = questions.question[i].name, .about = questions.question[i].title});
}

static void list_selectors(struct listing *listing)
{
    list_selector_kinds(listing);
    if (listing->verbose) /* their keys are one table */
        add_entry(listing, &(struct entry){"selector", "keys of all selectors", NULL, "selector.", selector_options});
}

static const struct kind {
    const char *name, *title;
    void (*list)(struct listing *listing); /* adds the entries; NULL: list_keys does */
} kinds[] = {
    {"combiners", "source", list_combiners},   {"datasets", "source", list_datasets},
    {"experts", "source", list_experts},       {"freezing", "source", list_freezing},
    {"heads", "source", list_heads},           {"keys", NULL, NULL},
    {"methods", "publication", list_methods},  {"models", "what it is", list_models},
    {"optimizers", "source", list_optimizers}, {"policies", "source", list_policies},
    {"questions", "answer", list_questions},   {"routers", "source", list_routers},
    {"schedules", "when", list_schedules},     {"selectors", "source", list_selectors},
    {"suites", "summary", list_suites},
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
    if (kind->list == NULL)
        return list_keys(call, call->argument_count > 1 ? call->arguments[1] : NULL, error);
    if (call->argument_count > 1)
        return error_set(error, ERROR_ARGUMENT, "command line: list: expected nothing after %s, found \"%s\"",
                         kind->name, call->arguments[1]);
    SCOPED(close_listing) struct listing listing = {.title = kind->title, .verbose = call->verbose};
    table_add_column(&listing.table, &(struct table_column){.title = "name", .once = call->verbose});
    if (call->verbose)
        table_add_column(&listing.table, &(struct table_column){.title = "what"});
    table_add_column(&listing.table, &(struct table_column){.title = call->verbose ? "text" : kind->title});
    kind->list(&listing);
    return output_chosen(call, &listing.table, error);
}

static const struct option options[] = {OUTPUT_FORMAT_OPTION, OUTPUT_COLUMNS_OPTION, {0}};

const struct command command_list = {
    .name = "list",
    .arguments = "combiners|datasets|experts|freezing|heads|keys|methods|models|optimizers|policies|questions|routers|"
                 "schedules|selectors|suites [SECTION]",
    .summary = "list the keys of suites and the names they can use",
    .details =
        "With --verbose each entry has its source, its formula and its keys with types, ranges and defaults; a\n"
        "suite has its rows and the table of a paper that it reproduces. keys lists the keys of all sections of\n"
        "a suite, or of SECTION.\n",
    .example = "  mtil list datasets\n  mtil list methods --verbose\n  mtil list keys training\n",
    .options = options,
    .least = 1,
    .most = 2,
    .run = run,
};

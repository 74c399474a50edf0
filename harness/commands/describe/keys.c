#include "harness/commands/parts.h"

#include <string.h>

#include "harness/commands/output.h"
#include "harness/config/keys.h"
#include "harness/run/settings.h"

static void add_name(struct table *table, const struct suite_key *key)
{
    struct text name = {0};
    text_add(&name, "%s.%s%s", key->section->name, key->section->each_of != NULL ? "NAME." : "", key->option->name);
    table_add_text(table, name.data);
    text_free(&name);
}

static void add_default(struct table *table, const struct suite_key *key)
{
    struct text text = {0};
    if (key->inherits != NULL)
        text_add(&text, "%s.%s", key->inherits->name, key->option->name);
    else if (key->option->fallback != NULL)
        text_add(&text, "%s", *key->option->fallback != 0 ? key->option->fallback : "\"\"");
    table_add_text(table, text.data);
    text_free(&text);
}

static void add_with(struct table *table, const struct suite_key *key)
{
    struct text text = {0};
    if (key->with.size > 0)
        text_add(&text, "%s: %s", key->section->chooser, key->with.data);
    table_add_text(table, text.data);
    text_free(&text);
}

static void add_key(struct table *table, const struct suite_key *key)
{
    struct text range = {0};
    option_add_range(&range, key->option);
    add_name(table, key);
    table_add_text(table, option_type_name(key->option));
    table_add_text(table, range.data);
    add_default(table, key);
    add_with(table, key);
    table_add_text(table, key->option->help);
    text_free(&range);
}

/* Of one section, or of all (NULL). */
static void fill(struct table *table, const struct suite_keys *keys, const struct suite_section *section)
{
    static const char *const titles[] = {"key", "type", "range", "default", "with", "help"};
    table->cell_width = SIZE_MAX;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(table, &(struct table_column){.title = titles[i], .align = ALIGN_LEFT});
    for (size_t i = 0; i < keys->count; i++) {
        if (section != NULL && keys->list[i].section != section)
            continue;
        if (i > 0 && keys->list[i].section != keys->list[i - 1].section)
            table_begin_block(table);
        add_key(table, &keys->list[i]);
    }
}

static void print_table(const struct command_call *call, const struct suite_keys *keys,
                        const struct suite_section *section)
{
    struct table table = {0};
    fill(&table, keys, section);
    output_table(call, &table);
    table_free(&table);
}

static void print_page(const struct command_call *call, const struct suite_keys *keys)
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
        print_table(call, keys, section);
    }
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

status list_keys(const struct command_call *call, const char *name, struct error *error)
{
    const struct suite_section *section = name != NULL ? find_section(name, error) : NULL;
    if (name != NULL && section == NULL)
        return ERROR_ARGUMENT;
    struct suite_keys keys;
    suite_keys_read(&keys, settings_sections);
    if (section == NULL && strcmp(options_text(call->options, "format"), "markdown") == 0)
        print_page(call, &keys);
    else
        print_table(call, &keys, section);
    suite_keys_free(&keys);
    return OK;
}

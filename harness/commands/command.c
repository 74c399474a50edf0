/* <argp.h> defines getopt's struct option, which is not ours. */
#define option getopt_option
#include <argp.h>
#undef option

#include "core/scope.h"
#include "harness/commands/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"

enum { KEY_HELP = 'h', KEY_QUIET = 'q', KEY_VERBOSE = 'v', KEY_OPTION = 256, COMMON = 3 };

const struct option command_common_options[] = {OPTION(BOOLEAN, "quiet", NULL, "no progress and no notes"),
                                                OPTION(BOOLEAN, "verbose", NULL, "more notes"),
                                                OPTION(BOOLEAN, "help", NULL, "this text"),
                                                {0}};

/* A command's table in argp's words. */
struct parser {
    const struct command *command;
    struct command_line *line;
    struct argp_option *options;
    struct text *help;
    int next; /* the argument after the one that argp rejected */
    struct error *error;
};

static size_t option_count(const struct command *command)
{
    size_t count = 0;
    while (command->options != NULL && command->options[count].name != NULL)
        count++;
    return count;
}

/* The placeholder of an option's value in --help, "N" or "table|csv"; NULL: the option takes none. The value of a
 * boolean that is true by default is optional. */
static const char *value_name(const struct option *option)
{
    switch (option->type) {
    case OPTION_INTEGER:
        return "N";
    case OPTION_REAL:
        return "X";
    case OPTION_CHOICE:
        return option->choices;
    case OPTION_TEXT:
        return "TEXT";
    case OPTION_FILE:
        return "FILE";
    case OPTION_FOLDER:
        return "FOLDER";
    case OPTION_LIST:
    case OPTION_FILES:
        return "A,B,...";
    case OPTION_BOOLEAN:
        break;
    }
    return option->fallback != NULL && strcmp(option->fallback, "true") == 0 ? "true|false" : NULL;
}

/* "format of the output (default table)" */
static void add_help(struct text *text, const struct option *option)
{
    bool shows_default = option->fallback != NULL && *option->fallback != 0 && option->type != OPTION_BOOLEAN;
    text_add(text, "%s%s%s%s", option->help, shows_default ? " (default " : "", shows_default ? option->fallback : "",
             shows_default ? ")" : "");
}

static void parser_free(struct parser *parser)
{
    for (size_t i = 0; i < option_count(parser->command); i++)
        text_free(&parser->help[i]);
    free(parser->options);
    free(parser->help);
}

static void parser_create(struct parser *parser)
{
    size_t count = option_count(parser->command);
    parser->options = xcalloc(count + COMMON + 1, sizeof *parser->options);
    parser->help = xcalloc(count + 1, sizeof *parser->help);
    for (size_t i = 0; i < count; i++) {
        const struct option *option = &parser->command->options[i];
        add_help(&parser->help[i], option);
        parser->options[i] = (struct argp_option){.name = option->name,
                                                  .key = KEY_OPTION + (int)i,
                                                  .arg = value_name(option),
                                                  .flags = option->type == OPTION_BOOLEAN ? OPTION_ARG_OPTIONAL : 0,
                                                  .doc = parser->help[i].data};
    }
    for (size_t i = 0; i < COMMON; i++) {
        const struct option *option = &command_common_options[i];
        parser->options[count + i] =
            (struct argp_option){.name = option->name, .key = option->name[0], .doc = option->help, .group = 1};
    }
}

/* The last of several values would silently be all; a flag says the same twice. */
static status set_option(const struct parser *parser, const struct option *option, const char *value)
{
    struct options *options = parser->line->options;
    if (option->type != OPTION_BOOLEAN && options_given(options, option->name))
        return error_set(parser->error, ERROR_ARGUMENT, "command line: --%s is repeated; expected it once%s",
                         option->name, option_is_list(option) ? ", with a list: A,B" : "");
    return options_set(options, option->name, value, "command line", parser->error);
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct parser *parser = state->input;
    struct command_line *line = parser->line;
    switch (key) {
    case KEY_HELP:
        line->help = true;
        return 0;
    case KEY_QUIET:
        line->quiet = true;
        return 0;
    case KEY_VERBOSE:
        line->verbose = true;
        return 0;
    case ARGP_KEY_ARGS:
        line->arguments = (const char *const *)state->argv + state->next;
        line->argument_count = (size_t)(state->argc - state->next);
        return 0;
    case ARGP_KEY_ERROR:
        parser->next = state->next;
        return 0;
    }
    if (key < KEY_OPTION || key >= KEY_OPTION + (int)option_count(parser->command))
        return ARGP_ERR_UNKNOWN;
    const struct option *option = &parser->command->options[key - KEY_OPTION];
    return set_option(parser, option, argument != NULL ? argument : "true") == OK ? 0 : EINVAL;
}

/* The error for an option that argp rejected: an unknown one, one without its value, or one with a needless value. */
static status wrong_option(const struct parser *parser, char **argv, struct error *error)
{
    const char *names[128];
    size_t count = 0;
    const char *word = argv[parser->next > 0 ? parser->next - 1 : 0], *name = word + strspn(word, "-");
    char stem[64];
    snprintf(stem, sizeof stem, "%.*s", (int)strcspn(name, "="), name);
    for (const struct argp_option *option = parser->options; option->name != NULL && count < 128; option++) {
        names[count++] = option->name;
        if (strcmp(stem, option->name) != 0)
            continue;
        if (option->arg == NULL)
            return error_set(error, ERROR_ARGUMENT, "command line: --%s takes no value, found \"%s\"", stem, word);
        return error_set(error, ERROR_ARGUMENT, "command line: --%s: expected a value (%s) after it", stem,
                         option->arg);
    }
    return error_unknown_word(error, "command line", "option", stem, names, count);
}

/* The name of a command in lists: "mini" of "data mini". */
static const char *last_word(const struct command *command)
{
    const char *space = strrchr(command->name, ' ');
    return space != NULL ? space + 1 : command->name;
}

static status missing_subcommand(const struct command *command, struct error *error)
{
    SCOPED(text_free) struct text names = {0};
    for (size_t i = 0; command->subcommands[i] != NULL; i++)
        text_add(&names, "%s%s", i > 0 ? ", " : "", last_word(command->subcommands[i]));
    return error_set(error, ERROR_ARGUMENT, "command line: %s: expected one of: %s right after it; see mtil %s --help",
                     command->name, names.data, command->name);
}

static status check_arguments(const struct command *command, const struct command_line *line, struct error *error)
{
    if (command->subcommands != NULL)
        return missing_subcommand(command, error);
    if (line->argument_count >= command->least && line->argument_count <= command->most)
        return OK;
    return error_set(error, ERROR_ARGUMENT, "command line: %s: expected %s, found %zu argument%s; see mtil %s --help",
                     command->name, *command->arguments != 0 ? command->arguments : "no arguments",
                     line->argument_count, line->argument_count == 1 ? "" : "s", command->name);
}

status command_parse(const struct command *command, int argc, char **argv, struct command_line *line,
                     struct error *error)
{
    struct error cause = {.code = OK};
    *line = (struct command_line){0};
    TRY(options_create(&line->options, command->options, error));
    SCOPED(parser_free) struct parser parser = {.command = command, .line = line, .error = &cause};
    status result = OK;
    parser_create(&parser);
    struct argp argp = {.options = parser.options, .parser = parse_option};
    error_t failure = argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, &parser);
    if (cause.code != OK)
        result = error_set(error, cause.code, "%s", cause.message);
    else if (failure == ENOMEM)
        result = error_set(error, ERROR_MEMORY, "command line: no memory for %d arguments", argc);
    else if (failure != 0)
        result = wrong_option(&parser, argv, error);
    else if (!line->help)
        result = check_arguments(command, line, error);
    if (result != OK)
        command_line_free(line);
    return result;
}

void command_line_free(struct command_line *line)
{
    options_destroy(line->options);
    *line = (struct command_line){0};
}

void command_help(const struct command *command, FILE *out)
{
    SCOPED(parser_free) struct parser parser = {.command = command};
    parser_create(&parser);
    char name[64];
    snprintf(name, sizeof name, "mtil %s", command->name);
    struct argp argp = {.options = parser.options, .args_doc = *command->arguments != 0 ? command->arguments : NULL};
    argp_help(&argp, out, ARGP_HELP_SHORT_USAGE, name);
    fprintf(out, "%s: %s.\n\n", name, command->summary);
    if (command->details != NULL)
        fprintf(out, "%s\n", command->details);
    for (size_t i = 0; command->subcommands != NULL && command->subcommands[i] != NULL; i++)
        fprintf(out, "  %-10s %s\n%s", last_word(command->subcommands[i]), command->subcommands[i]->summary,
                command->subcommands[i + 1] == NULL ? "\n" : "");
    argp_help(&argp, out, ARGP_HELP_LONG, name);
    /* The example is printed here, because argp would wrap lines that are meant to be copied. */
    fprintf(out, "\nExample:\n%s", command->example);
}

static status find_in(const struct command *const *table, const char *kind, const char *word,
                      const struct command **command, struct error *error)
{
    const char *names[64];
    size_t count = 0;
    for (; table[count] != NULL && count < sizeof names / sizeof *names; count++) {
        names[count] = last_word(table[count]);
        if (strcmp(names[count], word) == 0) {
            *command = table[count];
            return OK;
        }
    }
    return error_unknown_word(error, "command line", kind, word, names, count);
}

status command_find(const char *const *words, size_t count, const struct command **command, size_t *used,
                    struct error *error)
{
    char kind[64] = "command";
    const struct command *const *table = commands;
    for (*used = 0; table != NULL && *used < count && words[*used][0] != '-'; ++*used) {
        TRY(find_in(table, kind, words[*used], command, error));
        table = (*command)->subcommands;
        snprintf(kind, sizeof kind, "%s subcommand", (*command)->name);
    }
    if (*used > 0)
        return OK;
    return error_set(error, ERROR_ARGUMENT, "command line: expected a command, found \"%s\"; see mtil --help",
                     count > 0 ? words[0] : "");
}

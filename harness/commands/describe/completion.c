/* mtil completion: a script that completes words in a shell, and the words, from the tables that print --help. */
#include <string.h>

#include "core/file.h"
#include "core/scope.h"
#include "datasets/fetch/fetch.h"
#include "harness/commands/command.h"
#include "harness/run/settings.h"
#include "results/query/question.h"

/* --- What can follow --- */

/* "a|b|c" at the beginning of the usage line; size 0: other arguments. */
static size_t choices_size(const char *arguments)
{
    size_t size = strspn(arguments, "abcdefghijklmnopqrstuvwxyz0123456789_-|");
    bool whole = arguments[size] == 0 || arguments[size] == ' ';
    return whole && memchr(arguments, '|', size) != NULL ? size : 0;
}

static void add_choices(struct text *out, const char *choices, size_t size)
{
    for (size_t i = 0; i < size; i++)
        text_add(out, "%c", choices[i] == '|' ? ' ' : choices[i]);
}

/* Names of subcommands, of what the first argument may be, of suites, of datasets to fetch, questions and keys, separated by blanks. */
static void add_words(struct text *out, const struct command *command)
{
    for (size_t i = 0; command->subcommands != NULL && command->subcommands[i] != NULL; i++)
        text_add(out, "%s ", strrchr(command->subcommands[i]->name, ' ') + 1);
    add_choices(out, command->arguments, choices_size(command->arguments));
    bool fetches = strncmp(command->arguments, "NAME", 4) == 0, runs = strncmp(command->arguments, "SUITE", 5) == 0;
    for (size_t i = 0; runs && i < suite_library_size(); i++)
        text_add(out, "%s ", suite_library_get(i).name);
    for (const struct fetch_source *source = fetch_sources; fetches && source->name != NULL; source++)
        text_add(out, "%s ", source->name);
    bool asks = strstr(command->arguments, "WHAT") != NULL;
    SCOPED(questions_close) struct questions questions = {0};
    bool opened = asks && questions_open(&questions, NULL, NULL) == OK;
    for (size_t i = 0; opened && i < questions.count; i++)
        if (*questions.question[i].title != 0)
            text_add(out, "%s ", questions.question[i].name);
    bool sets = strcasestr(command->arguments, "key=value") != NULL;
    for (const struct suite_section *s = settings_sections; sets && s->name != NULL; s++)
        for (const struct option *o = s->options; s->each_of == NULL && o->name != NULL; o++)
            text_add(out, "%s.%s= ", s->name, o->name);
}

static const struct option *options_of(const struct command *command, size_t index)
{
    size_t own = 0;
    while (command->options != NULL && command->options[own].name != NULL)
        own++;
    const struct option *option =
        index < own ? &command->options[index] : &command_common_options[index - own]; /* which ends the list */
    return option->name != NULL ? option : NULL;
}

/* "--format"; NULL: it is no option of the command. */
static const struct option *find_option(const struct command *command, const char *name)
{
    const struct option *option = NULL;
    for (size_t i = 0; strncmp(name, "--", 2) == 0 && (option = options_of(command, i)) != NULL; i++)
        if (strcmp(option->name, name + 2) == 0)
            return option;
    return NULL;
}

/* The values of an option, or of the key called name, "merge.policy"; whether files are such values. */
static bool add_values(struct text *out, const struct option *option, const char *name)
{
    const struct suite_section *s = settings_sections;
    size_t size = strcspn(name, ".");
    while (s->name != NULL && (strlen(s->name) != size || strncmp(s->name, name, size) != 0))
        s++;
    if (option == NULL && name[size] == '.')
        option = options_find(s->options, name + size + 1);
    if (option != NULL && option->type == OPTION_CHOICE)
        add_choices(out, option->choices, strlen(option->choices));
    bool chooses =
        option != NULL && option->type != OPTION_CHOICE && s->choice != NULL && strcmp(s->chooser, option->name) == 0;
    for (size_t i = 0; chooses && s->choice(i) != NULL; i++)
        text_add(out, "%s ", s->choice(i));
    return !chooses && (option == NULL || option->type != OPTION_CHOICE);
}

/* What may follow the words before: the name whose value comes, or "", and the line's words from the command on. */
static bool add_next(struct text *out, const char *before, const char *const *words, size_t count)
{
    const struct command *command;
    const struct option *option;
    struct error ignored;
    size_t used;
    if (command_find(words, count, &command, &used, &ignored) != OK) {
        for (size_t i = 0; commands[i] != NULL; i++)
            text_add(out, "%s ", commands[i]->name);
        text_add(out, "help --help --version");
        return false;
    }
    option = find_option(command, before);
    if (*before != 0 && (option == NULL || option->type != OPTION_BOOLEAN))
        return add_values(out, option, before);
    add_words(out, command);
    for (size_t i = 0; (option = options_of(command, i)) != NULL; i++) /* a boolean's value is optional */
        text_add(out, " --%s%s", option->name, option->type != OPTION_BOOLEAN ? "=" : "");
    return command->subcommands == NULL && choices_size(command->arguments) == 0;
}

/* --- The command --- */

EMBEDDED_FILES(embedded_completion);

static status run(const struct command_call *call, struct error *error)
{
    static const char *const shells[] = {"bash", "zsh", "fish"}; /* in the order of the scripts */
    enum { SHELLS = sizeof shells / sizeof *shells };
    size_t shell = 0;
    while (shell < SHELLS && strcmp(call->arguments[0], shells[shell]) != 0)
        shell++;
    if (shell == SHELLS)
        return error_unknown_word(error, "command line", "shell", call->arguments[0], shells, SHELLS);
    if (call->argument_count == 1) {
        fputs((const char *)embedded_completion[shell].data, call->out);
        return OK;
    }
    SCOPED(text_free) struct text words = {0};
    bool files = add_next(&words, call->arguments[1], call->arguments + 2, call->argument_count - 2);
    fprintf(call->out, "%s %s\n", files ? "yes" : "no", words.data != NULL ? words.data : "");
    return OK;
}

const struct command command_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "print a script that completes the words of this program in a shell",
    .details =
        "make install puts the scripts where the shells find them. A script asks the program for the words that can\n"
        "follow. In zsh it is read after `autoload -U compinit && compinit`.\n",
    .example = "  source <(mtil completion bash)\n  source <(mtil completion zsh)\n  mtil completion fish | source\n",
    .least = 1,
    .most = SIZE_MAX,
    .run = run,
};

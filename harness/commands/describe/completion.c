/* mtil completion: completion scripts for shells, generated from the tables that print --help. */
#include <string.h>

#include "datasets/fetch/fetch.h"
#include "harness/commands/command.h"
#include "harness/config/library.h"
#include "harness/run/settings.h"
#include "results/query/question.h"

/* --- What can follow a command --- */

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

static bool takes_suite(const struct command *command)
{
    return strncmp(command->arguments, "SUITE", 5) == 0;
}

static bool takes_keys(const struct command *command)
{
    return strcasestr(command->arguments, "key=value") != NULL;
}

static bool takes_files(const struct command *command)
{
    return command->subcommands == NULL && choices_size(command->arguments) == 0;
}

/* A boolean is completed without its value, which is optional. */
static bool takes_value(const struct option *option)
{
    return option->type != OPTION_BOOLEAN;
}

/* Names of subcommands, of what the first argument may be, of suites, of datasets to fetch, questions and keys, separated by blanks. */
static void add_words(struct text *out, const struct command *command)
{
    for (size_t i = 0; command->subcommands != NULL && command->subcommands[i] != NULL; i++)
        text_add(out, "%s ", strrchr(command->subcommands[i]->name, ' ') + 1);
    add_choices(out, command->arguments, choices_size(command->arguments));
    for (size_t i = 0; takes_suite(command) && i < suite_library_size(); i++)
        text_add(out, "%s ", suite_library_get(i).name);
    bool fetches = strncmp(command->arguments, "NAME", 4) == 0;
    for (const struct fetch_source *source = fetch_sources; fetches && source->name != NULL; source++)
        text_add(out, "%s ", source->name);
    bool asks = strstr(command->arguments, "WHAT") != NULL;
    struct questions questions = {0};
    out->failed |= asks && questions_open(&questions, NULL, NULL) != OK;
    for (size_t i = 0; i < questions.count; i++)
        if (*questions.question[i].title != 0)
            text_add(out, "%s ", questions.question[i].name);
    questions_close(&questions);
    for (const struct suite_section *s = settings_sections; takes_keys(command) && s->name != NULL; s++)
        for (const struct option *o = s->options; s->each_of == NULL && o->name != NULL; o++)
            text_add(out, "%s.%s= ", s->name, o->name);
}

/* --- Every command --- */

struct script {
    struct text text;
    void (*add)(struct text *out, const struct command *command);
};

static void walk(struct script *script, const struct command *const *list)
{
    for (; list != NULL && *list != NULL; list++) {
        script->add(&script->text, *list);
        walk(script, (*list)->subcommands);
    }
}

/* Calls `add` for each command. */
static void for_all(struct text *out, void (*add)(struct text *, const struct command *))
{
    struct script script = {.text = *out, .add = add};
    walk(&script, commands);
    *out = script.text;
}

static void add_name_case(struct text *out, const struct command *command)
{
    text_add(out, "%s'%s'", strcmp(command->name, commands[0]->name) == 0 ? "" : "|", command->name);
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

/* --- bash --- */

static void add_bash_words(struct text *out, const struct command *command)
{
    const struct option *option;
    text_add(out, "    '%s') words='", command->name);
    add_words(out, command);
    for (size_t i = 0; (option = options_of(command, i)) != NULL; i++)
        text_add(out, " --%s%s", option->name, takes_value(option) ? "=" : "");
    text_add(out, "' files=%s ;;\n", takes_files(command) ? "yes" : "");
}

static void add_bash_values(struct text *out, const struct command *command)
{
    for (const struct option *option = command->options; option != NULL && option->name != NULL; option++) {
        if (!takes_value(option))
            continue;
        text_add(out, "    '%s --%s') words='", command->name, option->name);
        if (option->type == OPTION_CHOICE)
            add_choices(out, option->choices, strlen(option->choices));
        text_add(out, "' files=%s ;;\n", option->type == OPTION_CHOICE ? "" : "yes");
    }
}

static void add_bash_keys(struct text *out)
{
    for (const struct suite_section *s = settings_sections; s->name != NULL; s++)
        for (const struct option *o = s->options; s->each_of == NULL && o->name != NULL; o++) {
            bool chooses = s->choice != NULL && strcmp(s->chooser, o->name) == 0 && o->type != OPTION_CHOICE;
            if (!chooses && o->type != OPTION_CHOICE)
                continue;
            text_add(out, "    *' %s.%s') words='", s->name, o->name);
            for (size_t i = 0; chooses && s->choice(i) != NULL; i++)
                text_add(out, "%s ", s->choice(i));
            if (!chooses)
                add_choices(out, o->choices, strlen(o->choices));
            text_add(out, "' files= ;;\n");
        }
}

static void add_bash(struct text *out)
{
    text_add(out,
             "# bash completion for mtil, made by `mtil completion bash`\n"
             "_mtil()\n{\n"
             "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= words= files= i\n"
             "    # = is a word of its own: --format=csv, merge.policy=none\n"
             "    if [[ $current == = ]]; then\n"
             "        current=\n"
             "    elif [[ $before == = ]]; then\n"
             "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
             "    elif [[ $before != --* ]]; then\n"
             "        before=\n"
             "    fi\n"
             "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
             "        case \"${command:+$command }${COMP_WORDS[i]}\" in\n"
             "        ");
    for_all(out, add_name_case);
    text_add(out, ") command=\"${command:+$command }${COMP_WORDS[i]}\" ;;\n"
                  "        *) break ;;\n"
                  "        esac\n"
                  "    done\n"
                  "    case \"$command\" in\n"
                  "    '') words='");
    for (size_t i = 0; commands[i] != NULL; i++)
        text_add(out, "%s ", commands[i]->name);
    text_add(out, "help --help --version' ;;\n");
    for_all(out, add_bash_words);
    text_add(out, "    esac\n    case \"$command $before\" in\n");
    for_all(out, add_bash_values);
    add_bash_keys(out);
    text_add(out, "    *' '*.*) words= files=yes ;;\n"
                  "    esac\n"
                  "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                  "    # not what lies beside a database: NAME-wal, NAME-shm, NAME-lock\n"
                  "    [[ $files ]] && COMPREPLY+=($(compgen -f -X '*-[wsl][aho][lmc]*' -- \"$current\"))\n"
                  "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
                  "    return 0\n"
                  "}\n"
                  "complete -o filenames -F _mtil mtil\n");
}

/* --- The command --- */

static status run(const struct command_call *call, struct error *error)
{
    static const char *const shells[] = {"bash"};
    if (strcmp(call->arguments[0], shells[0]) != 0)
        return error_unknown_word(error, "command line", "shell", call->arguments[0], shells, 1);
    struct text script = {0};
    add_bash(&script);
    if (!script.failed)
        fputs(script.data, call->out);
    text_free(&script);
    return script.failed ? error_set(error, ERROR_FORMAT, "completion: the program's own questions cannot be read")
                         : OK;
}

const struct command command_completion = {
    .name = "completion",
    .arguments = "bash",
    .summary = "print a script that completes the words of this program in bash",
    .details =
        "make install puts it where bash finds it. zsh reads it after `autoload -U bashcompinit && bashcompinit`.\n",
    .example = "  source <(mtil completion bash)\n",
    .least = 1,
    .most = 1,
    .run = run,
};

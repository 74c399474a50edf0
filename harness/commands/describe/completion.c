/* mtil completion: completion scripts for shells, generated from the tables that print --help. */
#include <string.h>

#include "datasets/fetch/fetch.h"
#include "harness/commands/command.h"
#include "harness/config/library.h"
#include "harness/config/settings.h"
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

/* --- zsh and fish --- */

/* Within quotes; zsh's _arguments and _describe have meanings of their own for some characters. */
static void add_quoted(struct text *out, const char *text, const char *marked)
{
    for (; *text != 0; text++)
        text_add(out, *text == '\'' ? "'\\''" : strchr(marked, *text) != NULL ? "\\%c" : "%c", *text);
}

static void add_zsh_option(struct text *out, const struct option *option)
{
    text_add(out, " \\\n        '--%s%s[", option->name, takes_value(option) ? "=" : "");
    add_quoted(out, option->help, "[]:\\");
    text_add(out, "]");
    if (takes_value(option)) {
        text_add(out, ":");
        add_quoted(out, command_value_name(option), "[]:\\");
        text_add(out, ":");
    }
    if (option->type == OPTION_CHOICE) {
        text_add(out, "(");
        add_choices(out, option->choices, strlen(option->choices));
        text_add(out, ")");
    } else if (takes_value(option))
        text_add(out, option->type == OPTION_FOLDER ? "_files -/" : "_files");
    text_add(out, "'");
}

static void add_zsh_words(struct text *out, const struct command *command)
{
    const struct option *option;
    text_add(out, "    '%s') _arguments", command->name);
    for (size_t i = 0; (option = options_of(command, i)) != NULL; i++)
        add_zsh_option(out, option);
    text_add(out, " \\\n        '*:argument:{ compadd -S \"\" -- ");
    add_words(out, command);
    text_add(out, "%s}' ;;\n", takes_files(command) ? "; _files -F \"*-(wal|shm|lock)\" " : "");
}

static void add_zsh(struct text *out)
{
    text_add(out, "#compdef mtil\n# zsh completion for mtil, made by `mtil completion zsh`\n"
                  "_mtil()\n{\n"
                  "    local command= i=2\n"
                  "    while ((i < CURRENT)); do\n"
                  "        case \"${command:+$command }$words[i]\" in\n        ");
    for_all(out, add_name_case);
    text_add(out, ") command=\"${command:+$command }$words[i]\" ;;\n"
                  "        *) break ;;\n"
                  "        esac\n"
                  "        ((i++))\n"
                  "    done\n"
                  "    words=(mtil \"${(@)words[i,-1]}\")\n"
                  "    ((CURRENT -= i - 2))\n"
                  "    case $command in\n"
                  "    '') _values command");
    for (size_t i = 0; commands[i] != NULL; i++) {
        text_add(out, " \\\n        '%s[", commands[i]->name);
        add_quoted(out, commands[i]->summary, "[]:\\");
        text_add(out, "]'");
    }
    text_add(out, " ;;\n");
    for_all(out, add_zsh_words);
    text_add(out, "    esac\n}\n_mtil \"$@\"\n");
}

static void add_fish_about(struct text *out, const char *about)
{
    text_add(out, " -d '");
    for (; *about != 0; about++)
        text_add(out, strchr("'\\", *about) != NULL ? "\\%c" : "%c", *about);
    text_add(out, "'\n");
}

static void add_fish_words(struct text *out, const struct command *command)
{
    const struct option *option;
    text_add(out, "complete -c mtil -n '__mtil_at %s'%s -a '", command->name, takes_files(command) ? "" : " -f");
    add_words(out, command);
    text_add(out, "'\n");
    for (size_t i = 0; (option = options_of(command, i)) != NULL; i++) {
        text_add(out, "complete -c mtil -n '__mtil_at %s' -l %s", command->name, option->name);
        if (takes_value(option))
            text_add(out, option->type == OPTION_CHOICE ? " -x -a '" : " -r");
        if (option->type == OPTION_CHOICE) {
            add_choices(out, option->choices, strlen(option->choices));
            text_add(out, "'");
        }
        add_fish_about(out, option->help);
    }
}

static void add_fish(struct text *out)
{
    text_add(out, "# fish completion for mtil, made by `mtil completion fish`\n"
                  "function __mtil_at\n"
                  "    set -l command\n"
                  "    for word in (commandline -opc)[2..-1]\n"
                  "        switch (string join -- ' ' $command $word)\n"
                  "            case ");
    struct text names = {0};
    for_all(&names, add_name_case);
    for (const char *at = names.data != NULL ? names.data : ""; *at != 0; at++)
        text_add(out, "%c", *at == '|' ? ' ' : *at);
    out->failed |= names.failed;
    text_free(&names);
    text_add(out, "\n"
                  "                set -a command $word\n"
                  "            case '*'\n"
                  "                break\n"
                  "        end\n"
                  "    end\n"
                  "    test \"$command\" = \"$argv\"\n"
                  "end\n");
    for (size_t i = 0; commands[i] != NULL; i++) {
        text_add(out, "complete -c mtil -f -n '__mtil_at \"\"' -a %s", commands[i]->name);
        add_fish_about(out, commands[i]->summary);
    }
    for_all(out, add_fish_words);
}

/* --- The command --- */

static status run(const struct command_call *call, struct error *error)
{
    static const struct shell {
        const char *name;
        void (*add)(struct text *out);
    } shells[] = {{"bash", add_bash}, {"zsh", add_zsh}, {"fish", add_fish}};
    enum { SHELLS = sizeof shells / sizeof *shells };
    const char *names[SHELLS];
    for (size_t i = 0; i < SHELLS; i++) {
        names[i] = shells[i].name;
        if (strcmp(names[i], call->arguments[0]) != 0)
            continue;
        struct text script = {0};
        shells[i].add(&script);
        fputs(script.failed ? "" : script.data, call->out);
        status result = script.failed ? error_set(error, ERROR_MEMORY, "completion: no memory for a script") : OK;
        text_free(&script);
        return result;
    }
    return error_unknown_word(error, "command line", "shell", call->arguments[0], names, SHELLS);
}

const struct command command_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "print a script that completes the words of this program in a shell",
    .details = "make install puts the scripts where shells find them.\n",
    .example = "  source <(mtil completion bash)\n"
               "  mtil completion fish > ~/.config/fish/completions/mtil.fish\n",
    .least = 1,
    .most = 1,
    .run = run,
};

#!/usr/bin/env python3
"""Man pages and shell completions, from the commands' own declarations.

bubblesim describe | documents.py FOLDER VERSION: writes FOLDER/man/*.1, FOLDER/bubblesim (bash),
FOLDER/_bubblesim (zsh) and FOLDER/bubblesim.fish. tests/conformance/app/help_test.cpp
"""
import json
import pathlib
import re
import sys


def with_all_below(command):
    """The command and those below it, in the order of declaration."""
    return [command] + [below for part in command["commands"] for below in with_all_below(part)]


def own_name(command):
    return command["name"].split(" ")[-1]


def first_sentence(text):
    """In one line and without its full stop, as help lists commands (command_tree.cpp)."""
    return re.split(r"\. |\.\n|\n\n", text)[0].removesuffix(".").replace("\n", " ")


# ---- Man pages, in the macros of man(7).

def roff(text):
    """Keeps what roff reads as its own: backslashes, hyphens (which it may turn into dashes), and a
    dot or an apostrophe that begins a line."""
    return (("\\&" if text[:1] in (".", "'") and text else "")
            + text.replace("\\", "\\e").replace("-", "\\-"))


def dashed(command):
    return command["name"].replace(" ", "-")


def body(text):
    """Paragraphs as they are; lines that begin with two spaces word by word; "Examples:" as a
    heading."""
    out, literal = "", False
    for line in text.splitlines():
        example = line.startswith("  ")
        if example != literal:
            out += ".nf\n" if example else ".fi\n"
        literal = example
        if not line:
            out += ".PP\n"
        elif line in ("Examples:", "Example:"):
            out += ".SH EXAMPLES\n"
        else:
            out += roff(line) + "\n"
    return out + (".fi\n" if literal else "")


def option_entry(option):
    names = ", ".join(f"\\fB{roff(name)}\\fR" for name in option["names"])
    if option["names"][0].startswith("-") and option["value"]:
        names += f" \\fI{roff(option['value'])}\\fR"
    text = option["help"]
    if option["choices"]:
        text += ("; one of " if text else "One of ") + ", ".join(option["choices"])
    return f".TP\n{names}\n{body(text)}"


def section(heading, options):
    return f".SH {heading}\n" + "".join(map(option_entry, options)) if options else ""


def man_page(command, version):
    text = (f".TH \"{dashed(command).upper()}\" 1 \"\" \"bubblesim {version}\" \"User Commands\"\n"
            f".SH NAME\n{roff(dashed(command))} \\- {roff(first_sentence(command['help']))}\n"
            f".SH SYNOPSIS\n\\fB{roff(command['name'])}\\fR [\\fIOPTIONS\\fR]")
    text += "".join(f" [\\fI{word['names'][0]}\\fR]" for word in command["positionals"])
    text += (" [\\fICOMMAND\\fR ...]" if command["commands"] else "") + "\n"
    text += section("ARGUMENTS", command["positionals"]) + section("OPTIONS", command["options"])
    text += ".SH COMMANDS\n" if command["commands"] else ""
    for part in command["commands"]:
        text += f".TP\n\\fB{roff(dashed(part))}\\fR(1)\n{roff(first_sentence(part['help']))}\n"
    return text + ".SH DESCRIPTION\n" + body(command["help"])


# ---- Completions. Each script first finds which command the line is in, then offers its words.

def quoted(text, quote="'\\''"):
    """Between single quotes; fish has \\' inside of them, the others leave them for a moment."""
    return "'" + text.replace("'", quote) + "'"


def patterns(program, separator):
    """Patterns of every command below the program."""
    return separator.join(quoted(command["name"]) for command in with_all_below(program)[1:])


def choice_cases(program, before, after):
    """A line an option with choices: "'bubblesim run --mode') COMMAND offline online both ;;"."""
    return "".join(
        f"    {' | '.join(quoted(command['name'] + ' ' + name) for name in option['names'])}) "
        f"{before}{' '.join(option['choices'])}{after} ;;\n"
        for command in with_all_below(program) for option in command["options"]
        if option["choices"])


def bash_script(program):
    text = f"""# bash completion for bubblesim
_bubblesim() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command=bubblesim commands='' options='' values='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${{COMP_WORDS[i]}}" in
    {patterns(program, " | ")}) command="$command ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$command $before" in
{choice_cases(program, "values='", "'")}  esac
  case $command in
"""
    for command in with_all_below(program):
        options = [name for option in command["options"] for name in option["names"]]
        text += (f"    {quoted(command['name'])})\n"
                 f"      commands={quoted(' '.join(map(own_name, command['commands'])))}\n"
                 f"      options={quoted(' '.join(options))} ;;\n")
    return text + """  esac
  [[ $word != -* ]] || commands=$options
  mapfile -t COMPREPLY < <(compgen -W "${values:-$commands}" -- "$word")
}
complete -o default -F _bubblesim bubblesim
"""


def zsh_entry(name, text):
    """_describe splits name from help at the first colon."""
    return " " + quoted(name.replace(":", "\\:") + ":" + first_sentence(text))


def zsh_script(program):
    text = f"""#compdef bubblesim
local command=bubblesim i
local -a commands options
for ((i = 2; i < CURRENT; i++)); do
  case "$command ${{words[i]}}" in
    {patterns(program, " | ")}) command="$command ${{words[i]}}" ;;
  esac
done
case "$command ${{words[CURRENT - 1]}}" in
{choice_cases(program, "compadd -- ", "; return")}esac
case $command in
"""
    for command in with_all_below(program):
        commands = "".join(zsh_entry(own_name(part), part["help"]) for part in command["commands"])
        options = "".join(zsh_entry(name, option["help"])
                          for option in command["options"] for name in option["names"])
        text += (f"  {quoted(command['name'])})\n    commands=({commands} )\n"
                 f"    options=({options} ) ;;\n")
    return text + """esac
if [[ $PREFIX == -* ]]; then
  _describe -o option options
else
  (( $#commands )) && _describe command commands
  _files
fi
"""


def fish_line(command, words, text):
    at = quoted("__bubblesim_at " + command["name"], "\\'")
    said = quoted(first_sentence(text), "\\'")
    return f"complete -c bubblesim -n {at}{words} -d {said}\n"


def fish_option(command, option):
    words = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
                    for name in option["names"])
    if option["choices"]:
        words += " -x -a " + quoted(" ".join(option["choices"]), "\\'")
    elif option["value"]:
        words += " -r"
    return fish_line(command, words, option["help"])


def fish_script(program):
    text = f"""# fish completion for bubblesim
function __bubblesim_at
    set -l command bubblesim
    for word in (commandline -opc)[2..-1]
        switch "$command $word"
            case {patterns(program, " ")}
                set command "$command $word"
        end
    end
    test "$command" = "$argv"
end
"""
    for command in with_all_below(program):
        for part in command["commands"]:
            text += fish_line(command, f" -f -a {own_name(part)}", part["help"])
        text += "".join(fish_option(command, option) for option in command["options"])
    return text


def main():
    folder, version = pathlib.Path(sys.argv[1]), sys.argv[2]
    program = json.load(sys.stdin)
    (folder / "man").mkdir(parents=True, exist_ok=True)
    for command in with_all_below(program):
        (folder / "man" / f"{dashed(command)}.1").write_text(man_page(command, version))
    (folder / "bubblesim").write_text(bash_script(program))
    (folder / "_bubblesim").write_text(zsh_script(program))
    (folder / "bubblesim.fish").write_text(fish_script(program))


if __name__ == "__main__":
    main()

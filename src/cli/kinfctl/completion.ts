import { Argument, type Command } from "commander";

/** A command with its options, as shells complete them. */
interface Completed {
  name: string;
  description: string;
  options: { flag: string; description: string; choices: readonly string[] }[];
}

const SHELLS = ["bash", "zsh", "fish"] as const;

export function addCompletion(program: Command): void {
  program
    .command("completion")
    .description("print a completion script: `source <(kinfctl completion bash)`")
    .addArgument(new Argument("<shell>", "for which shell").choices(SHELLS))
    .action((shell: (typeof SHELLS)[number]) => {
      console.log({ bash, zsh, fish }[shell](program.name(), commandsOf(program)));
    });
}

function commandsOf(program: Command): Completed[] {
  return program.commands.map((command) => ({
    name: command.name(),
    description: command.description(),
    options: command.options.map((option) => ({
      flag: option.long ?? option.short ?? "",
      description: option.description,
      choices: option.argChoices ?? [],
    })),
  }));
}

function bash(name: string, commands: readonly Completed[]): string {
  const cases = commands.map(
    ({ name: command, options }) => `    ${command}) words="${options.map((o) => o.flag).join(" ")}" ;;`,
  );
  return `_${name}() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} words
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map((command) => command.name).join(" ")}" -- "$word"))
    return
  fi
  if [ "$previous" = -o ] || [ "$previous" = --output ]; then
    COMPREPLY=($(compgen -W "table json yaml" -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
    completion) words="bash zsh fish" ;;
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}
complete -o filenames -F _${name} ${name}`;
}

function zsh(name: string, commands: readonly Completed[]): string {
  const quote = (text: string) => text.replaceAll("'", "'\\''").replaceAll(":", "\\:").replace(/[[\]]/g, "\\$&");
  const described = commands.map((command) => `    '${command.name}:${quote(command.description)}'`);
  const cases = commands.map(({ name: command, options }) => {
    const specs = options.map(({ flag, description, choices }) => {
      const values = choices.length === 0 ? "" : `:value:(${choices.join(" ")})`;
      return `'${flag}[${quote(description)}]${values}'`;
    });
    return `    ${command}) _arguments ${[...specs, "'*:file:_files'"].join(" ")} ;;`;
  });
  return `#compdef ${name}
_${name}() {
  local -a commands
  commands=(
${described.join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = "_${name}" ]; then _${name} "$@"; else compdef _${name} ${name}; fi`;
}

function fish(name: string, commands: readonly Completed[]): string {
  const quote = (text: string) => text.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
  const lines = commands.flatMap(({ name: command, description, options }) => [
    `complete -c ${name} -n __fish_use_subcommand -f -a ${command} -d '${quote(description)}'`,
    ...options.map(({ flag, description, choices }) => {
      const values = choices.length === 0 ? "" : ` -x -a '${choices.join(" ")}'`;
      return `complete -c ${name} -n '__fish_seen_subcommand_from ${command}' -l ${flag.replace(/^--/, "")}${values} -d '${quote(description)}'`;
    }),
  ]);
  return lines.join("\n");
}

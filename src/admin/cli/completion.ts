import type { Arguments } from '../commands/argument.ts'
import { optionOf } from './parse.ts'

/** A script for the shell, made of the names and options of all commands. */
export function completionScript(listing: ReadonlyMap<string, Arguments>): string {
  const groups = new Map<string, string[]>()
  for (const name of listing.keys()) {
    const [first = '', second] = name.split('.')
    groups.set(first, [...(groups.get(first) ?? []), ...(second === undefined ? [] : [second])])
  }
  const inGroups = [...groups].filter(([, seconds]) => seconds.length > 0)
  const seconds = inGroups.map(([first, names]) => `      ${first}) names="${names.join(' ')}" ;;`)
  const options = [...listing].map(([name, of]) => {
    return `    "${name.replace('.', ' ')}") options="${Object.keys(of).map(optionOf).join(' ')}" ;;`
  })
  const two = [...listing.keys()].filter((name) => name.includes('.')).map((name) => `"${name.replace('.', ' ')}"`)
  return `_onceonly() {
  local word="\${COMP_WORDS[COMP_CWORD]}" name="\${COMP_WORDS[1]}" names="" options=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    names="${[...groups.keys()].join(' ')}"
  elif [ "$COMP_CWORD" -eq 2 ]; then
    case "$name" in
${seconds.join('\n')}
    esac
  fi
  case "$name \${COMP_WORDS[2]}" in ${two.join('|')}) name="$name \${COMP_WORDS[2]}" ;; esac
  case "$name" in
${options.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$names $options" -- "$word"))
}
complete -o default -F _onceonly onceonly
`
}

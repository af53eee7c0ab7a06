import type { Arguments } from '../commands/argument.ts'
import { optionOf, wordOf } from './parse.ts'

interface Documented {
  readonly summary: string
  readonly details?: string
  readonly arguments: Arguments
  readonly words?: readonly string[]
}

/** `run cancel RUN_ID`: the name and the words behind it. */
export function usageOf(name: string, { arguments: of, words = [] }: Documented): string {
  const shown = words.map((word) => (of[word]?.form === 'list' ? `${wordOf(word)}…` : wordOf(word))).join(' ')
  const isRequired = words.every((word) => of[word]?.isRequired === true)
  return [name.replace('.', ' '), isRequired ? shown : `[${shown}]`].join(' ').trimEnd()
}

export function helpOf(name: string, command: Documented, common: Arguments): string {
  const { summary, details, words = [] } = command
  const own = Object.keys(command.arguments).filter((each) => !words.includes(each))
  const parts = [
    `onceonly ${usageOf(name, command)}`,
    `${summary.charAt(0).toUpperCase()}${summary.slice(1)}${/[.?]$/.test(summary) ? '' : '.'}`,
    ...(details === undefined ? [] : [details]),
    ...(words.length === 0 ? [] : [listOf(words.map((word) => [wordOf(word), command.arguments[word]?.about ?? '']))]),
    ...(own.length === 0 ? [] : [optionsOf(own, command.arguments)]),
    ...(Object.keys(common).length === 0 ? [] : [optionsOf(Object.keys(common), common)]),
    'Exit status: 0 done; 1 something needs attention, or nothing was found; 2 it could not be done.',
  ]
  return `${parts.join('\n\n')}\n`
}

function optionsOf(names: readonly string[], of: Arguments): string {
  return listOf(
    names.map((name) => {
      const value = of[name]?.form === 'flag' ? '' : ` ${valueOf(of, name)}`
      return [
        `${optionOf(name)}${value}`,
        `${of[name]?.about ?? ''}${of[name]?.form === 'list' ? '; may be repeated' : ''}${spellingsText(of, name)}`,
      ]
    }),
  )
}

/** `; or --succeeded [VALUE], --rerun` */
function spellingsText(of: Arguments, name: string): string {
  const shown = Object.entries(of[name]?.spellings ?? {}).map(([option, { takes }]) => {
    return `--${option}${takes === undefined ? '' : ` [${wordOf(takes)}]`}`
  })
  return shown.length === 0 ? '' : `; or ${shown.join(', ')}`
}

function valueOf(of: Arguments, name: string): string {
  const values = of[name]?.schema['enum']
  return Array.isArray(values) ? values.join('|') : wordOf(name)
}

export function listOf(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([head]) => head.length))
  return rows.map(([head, about]) => `  ${head.padEnd(width)}   ${about}`).join('\n')
}

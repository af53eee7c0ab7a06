import { parseArgs } from 'node:util'
import type { Argument, Arguments, Given, Spelling } from '../commands/argument.ts'
import { fromTexts } from '../commands/argument.ts'
import { hint } from '../commands/hint.ts'
import type { BadArguments } from '../commands/refusal.ts'
import { brief, Usage } from './usage.ts'

/** `runId` is `--run-id` as an option, and RUN_ID as a word. */
export function optionOf(name: string): string {
  return `--${kebab(name)}`
}

export function wordOf(name: string): string {
  return kebab(name).replaceAll('-', '_').toUpperCase()
}

function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** What was typed after the name of a command, as arguments. The last word takes all that follow where it is a list. */
export function parseWords(typed: readonly string[], of: Arguments, words: readonly string[]): Given {
  const names = new Map(Object.keys(of).map((name) => [kebab(name), name]))
  const spellings = spellingsOf(of)
  const { tokens } = parseArgs({
    args: [...typed],
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: {
      ...Object.fromEntries([...spellings.keys()].map((option) => [option, { type: 'boolean' as const }])),
      ...Object.fromEntries([...names].map(([option, name]) => [option, configOf(of[name])])),
    },
  })
  const given: Record<string, string[]> = {}
  const add = (name: string, value: string) => void (given[name] = [...(given[name] ?? []), value])
  const rest = tokens.flatMap((token) => (token.kind === 'positional' ? [token] : []))
  const hasAllWords = rest.length === 0 || rest.length === words.length
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    const name = names.get(token.name === 'h' ? 'help' : token.name)
    const spelling = spellings.get(token.name)
    if (name !== undefined) add(name, textOf(token, of[name]))
    else if (spelling !== undefined) {
      const { name: meant, value, takes } = spelling
      add(meant, value)
      if (takes === undefined && token.value !== undefined) throw new Usage(`${token.rawName} has no value.`)
      // The word behind it is its value only where there is one word too many.
      const next = hasAllWords ? -1 : rest.findIndex(({ index }) => index === token.index + 1)
      const [word] = takes === undefined || next < 0 || token.value !== undefined ? [] : rest.splice(next, 1)
      const taken = token.value ?? word?.value
      if (takes !== undefined && taken !== undefined) add(takes, taken)
    } else
      throw new Usage(`There is no option ${token.rawName}.${near(token.name, [...names.keys(), ...spellings.keys()])}`)
  }
  const typedWords = rest.map(({ value }) => value)
  for (const [name, values] of wordsOf(typedWords, of, words)) given[name] = [...values, ...(given[name] ?? [])]
  return valuesOf(of, given)
}

/** Options that stand for another one, with the name of its argument. */
function spellingsOf(of: Arguments): ReadonlyMap<string, Spelling & { readonly name: string }> {
  return new Map(
    Object.entries(of).flatMap(([name, { spellings = {} }]) =>
      Object.entries(spellings).map(([option, spelling]) => [option, { name, ...spelling }] as const),
    ),
  )
}

function near(name: string, options: readonly string[]): string {
  return hint(name, options, (option) => `--${option}`)
}

function configOf(of: Argument | undefined): { type: 'boolean' | 'string' } {
  return { type: of?.form === 'flag' ? 'boolean' : 'string' }
}

interface OptionToken {
  readonly rawName: string
  readonly value: string | undefined
  readonly inlineValue: boolean | undefined
}

function textOf({ rawName, value, inlineValue }: OptionToken, of: Argument | undefined): string {
  if (of === undefined || of.form === 'flag') {
    if (value !== undefined) throw new Usage(`${rawName} has no value.`)
    return 'true'
  }
  if (value === undefined) throw new Usage(`${rawName} needs a value.`)
  if (inlineValue !== true && value.startsWith('--')) {
    throw new Usage(`${rawName} needs a value; write ${rawName}=VALUE where it begins with dashes.`)
  }
  return value
}

function wordsOf(
  typed: readonly string[],
  of: Arguments,
  words: readonly string[],
): readonly (readonly [name: string, values: readonly string[]])[] {
  const last = words.at(-1)
  const isOpen = last !== undefined && of[last]?.form === 'list'
  if (!isOpen && typed.length > words.length)
    throw new Usage(`Unexpected word \`${brief(typed[words.length] ?? '')}\`; --help shows what can follow.`)
  return words.flatMap((name, at) => {
    const values = isOpen && name === last ? typed.slice(at) : typed.slice(at, at + 1)
    return values.length === 0 ? [] : [[name, values] as const]
  })
}

function valuesOf(of: Arguments, given: Readonly<Record<string, readonly string[]>>): Given {
  const lists = Object.entries(given).filter(([name]) => of[name]?.form === 'list')
  const single = Object.entries(given).filter(([name]) => of[name]?.form !== 'list')
  for (const [name, values] of single) {
    if (values.length > 1) throw new Usage(`${optionOf(name)} was given ${values.length} times.`)
  }
  const texts = Object.fromEntries(single.map(([name, [value]]) => [name, value]))
  return { ...fromTexts(of, texts), ...Object.fromEntries(lists) }
}

/** One line about arguments that are wrong, in the words of the command line. */
export function faultText({ faults }: BadArguments, words: readonly string[] = []): string {
  return faults
    .map(({ field, detail }) => {
      const name = words.includes(field) ? wordOf(field) : optionOf(field)
      return `${name} ${detail}${detail.endsWith('?') || detail.endsWith('.') ? '' : '.'}`
    })
    .join(' ')
}

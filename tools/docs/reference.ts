import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ErrorRow, errorTables } from '../../src/errors.ts'
import { defaults, limits } from '../../src/ledger/core/limits.ts'
import { root } from '../command.ts'

const page = (title: string, lines: readonly string[]) =>
  [`---\ntitle: ${title}\ngroup: Reference\n---\n# ${title}\n`, ...lines, ''].join('\n')

/** Every error of the library, from the tables that throw it. */
export function errorsPage(): string {
  const sections = Object.entries(errorTables).flatMap(([wing, table]) => [
    `## ${wing === 'ledger' ? 'onceonly, its stores and routes' : `onceonly/${wing}`}\n`,
    '| code | may succeed unchanged, later | the change was applied | what to do |',
    '|---|---|---|---|',
    ...Object.entries<ErrorRow>(table).map(
      ([code, { retryable, applied, next }]) => `| \`${code}\` | ${retryable ? 'yes' : 'no'} | ${applied} | ${next} |`,
    ),
    '',
  ])
  return page('Errors', [
    'All errors of the library are a `OnceError` with a `code`; distinguish them with `isOnceError(error, code)`.\n',
    ...sections,
  ])
}

/** Every bound and default, with the reason that stands above it in the source. */
export function limitsPage(): string {
  const source = readFileSync(join(root, 'src/ledger/core/limits.ts'), 'utf8')
  const reasons = new Map<string, string>()
  let reason = ''
  for (const [, comment, name] of source.matchAll(/\/\*\*(.*?)\*\/|^ {2}(\w+):/gms)) {
    if (comment !== undefined) reason = comment.replaceAll(/\s*\n\s*\*\s*/g, ' ').trim()
    else if (name !== undefined) reasons.set(name, reason)
  }
  const table = (values: Readonly<Record<string, number>>) => [
    '| name | value | why |',
    '|---|---|---|',
    ...Object.entries(values).map(([name, value]) => `| \`${name}\` | ${shown(name, value)} | ${reasons.get(name)} |`),
    '',
  ]
  return page('Defaults and limits', [
    '## What an operation gets when it does not say otherwise\n',
    ...table(defaults),
    '## Fixed limits\n',
    ...table(limits),
  ])
}

const units = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const

/** 604 800 000 ms is hard to read, 7 d is not. */
function shown(name: string, value: number): string {
  if (!name.endsWith('Ms') || value === 0) return value.toLocaleString('en').replaceAll(',', ' ')
  const [size, unit] = units.find(([each]) => value % each === 0) ?? [1, 'ms']
  return `${value / size} ${unit}`
}

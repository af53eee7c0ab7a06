import { EFFECT_KEY_ID_DIGITS } from '../../core/identity.ts'
import type { VisibleState } from '../../core/record.ts'
import { visibleStates } from '../../core/record.ts'
import type { Dialect } from '../dialect.ts'
import { idPrefixOf, memberText } from '../mentions.ts'
import type { RecordFilter, StateCounts } from '../port.ts'
import { stateCode } from '../row.ts'
import type { RecordTables, StoredRow, TableValue } from './tables.ts'

/** One state that operators see may be several in the table. */
const codesOf: Readonly<Record<VisibleState, readonly number[]>> = {
  in_progress: [stateCode.reserved, stateCode.running],
  succeeded: [stateCode.succeeded],
  failed_terminal: [stateCode.failed_terminal],
  failed_retryable: [stateCode.failed_retryable, stateCode.lapsed],
  unknown: [stateCode.unknown],
}

const visibleCodes = visibleStates.flatMap((state) => codesOf[state])

/** The columns that a filter looks at, beside the place of a row; notes may be long, so most leave them out. */
export function filterColumns({ mentions }: RecordFilter, place: string): string {
  const small = 'r.state, r.expires_at, r.claimed_at, r.tenant, r.caller, r.operation, r.key'
  if (mentions === undefined) return small
  return `${place === 'id' ? '' : 'r.id, '}${small}, r.batch, r.pointer, r.detail`
}

export interface Where {
  readonly text: string
  readonly values: readonly TableValue[]
}

/** Past its end a record `r` is invisible at once, whether or not the sweep has been there. */
export function visible({ now }: Pick<RecordTables, 'now'>): string {
  return `r.state IN (${visibleCodes.join(', ')}) AND (r.expires_at IS NULL OR r.expires_at > (SELECT ${now}))`
}

/** The condition of a filter on rows `r`. */
export function whereOf(tables: Pick<RecordTables, 'now' | 'dialect'>, filter: RecordFilter): Where {
  const texts = [filter.ended === true ? '1 = 1' : visible(tables)]
  const values: TableValue[] = []
  for (const column of ['tenant', 'caller', 'operation', 'key'] as const) {
    const wanted = filter[column]
    if (wanted === undefined) continue
    texts.push(`r.${column} = ?`)
    values.push(wanted)
  }
  if (filter.state !== undefined) texts.push(`r.state IN (${codesOf[filter.state].join(', ')})`)
  if (filter.since !== undefined) {
    texts.push(`r.claimed_at >= ${tables.dialect.place('bigint')}`)
    values.push(Math.ceil(filter.since))
  }
  if (filter.mentions !== undefined) {
    const mentions = mentionsSql(tables.dialect, filter.mentions)
    texts.push(`(${mentions.map(([text]) => text).join(' OR ')})`)
    values.push(...mentions.map(([, value]) => value))
  }
  return { text: texts.join(' AND '), values }
}

/** The same as `mentionOf` says of a record. */
function mentionsSql({ place, idText }: Dialect, id: string): readonly (readonly [string, string])[] {
  const text = place('text')
  const prefix = idPrefixOf(id)
  const inId = `substr(${idText('r.id')}, 1, ${EFFECT_KEY_ID_DIGITS}) = ${text}`
  // Compares by bytes on every database, unlike LIKE.
  const inJson = (column: string, member: string) =>
    [`r.${column} <> replace(r.${column}, ${text}, '')`, member + memberText(id)] as const
  return [
    [`r.key = ${text}`, id],
    [`r.batch = ${text}`, id],
    ...(prefix === null ? [] : [[inId, prefix] as const]),
    inJson('pointer', '"id"'),
    inJson('detail', ''),
  ]
}

/** Adds rows of `state` and `rows` to what was counted so far. */
export function createStateCounts(): { add(rows: readonly StoredRow[]): void; counts(): StateCounts } {
  const byCode = new Map<number, number>()
  const total = (state: VisibleState) => codesOf[state].reduce((sum, code) => sum + (byCode.get(code) ?? 0), 0)
  return {
    add(rows) {
      for (const { state, found } of rows) byCode.set(Number(state), (byCode.get(Number(state)) ?? 0) + Number(found))
    },
    counts: () => Object.fromEntries(visibleStates.map((state) => [state, total(state)])) as StateCounts,
  }
}

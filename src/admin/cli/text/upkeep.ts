import { checklist } from '../../../http/protocol/describe.ts'
import { SECOND } from '../../../ledger/core/limits.ts'
import type { HistoryPoint } from '../../core/history-points.ts'
import { iso, paint, plain, table } from '../output.ts'
import type { Texts } from './texts.ts'

/** What a server counts of its own troubles, with the words of a reader. */
const troubles = {
  losses: 'records lost',
  guardErrors: 'locks not asked',
  sagaFailures: 'sagas failed',
  backgroundFailures: 'background failures',
} as const

/** Null for a time in which nothing did. */
function wentWrong(perSecond: HistoryPoint['perSecond'], seconds: number): string | null {
  const counted = Object.entries(troubles).map(([name, about]) => [(perSecond[name] ?? 0) * seconds, about] as const)
  const some = counted.filter(([count]) => count > 0)
  return some.length === 0
    ? null
    : some.map(([count, about]) => `${Math.max(1, Math.round(count))} ${about}`).join(', ')
}

function isBusy({ perSecond, gauges }: HistoryPoint): boolean {
  return [perSecond, gauges].some((some) => Object.values(some).some((value) => value !== 0))
}

const colours = { ok: 'green', warning: 'yellow', danger: 'red' } as const

export const upkeepTexts: Texts = {
  sweep: ({ removed }) => `${removed} records are removed.`,
  migrate: ({ rows }) =>
    table(
      ['room', 'version'],
      rows.map(({ room, version }) => [room, version]),
      'No tables.',
    ),
  migrations: ({ statements }) =>
    statements.length === 0 ? '-- The tables are up to date.' : statements.map((each) => `${each};`).join('\n'),
  doctor: ({ findings }) => {
    const lines = findings.map(({ name, verdict, found, advice }) => {
      const text = `${paint(colours[verdict], verdict.padEnd(7))} ${name.padEnd(12)} ${plain(found)}`
      return advice === null ? text : `${text}\n        ${''.padEnd(12)} ${advice}`
    })
    return { text: lines.join('\n'), status: findings.some(({ verdict }) => verdict === 'danger') ? 1 : 0 }
  },
  restored: ({ from, to, fence, risks }) => {
    const lines = risks.map(({ operation, keys, undated }) => [operation, undated, keys])
    const rest = table(
      ['operation', 'keys without a time', 'of the newest'],
      lines,
      'No operation has keys without a time.',
    )
    return [
      `Every fence from now on is larger than ${fence}.`,
      `UUIDv7 keys from ${iso(from)} to ${iso(to)} are refused where they have no record.`,
      ...(risks.length === 0 ? [] : ['These keys look like new ones. Compare them with the providers:']),
      rest,
    ].join('\n')
  },
  audit: ({ rows }) => {
    const lines = rows.map(({ at, by, via, what, result, target, note }) => [
      iso(at),
      by,
      via,
      what,
      result,
      target,
      note,
    ])
    return table(['at', 'who', 'via', 'what', 'result', 'target', 'note'], lines, 'No actions.')
  },
  history: ({ points }) => {
    const [first, second] = points
    const seconds = first === undefined || second === undefined ? 0 : (second.at - first.at) / SECOND
    const lines = points
      .filter(isBusy)
      .map(({ at, perSecond, latencyMs, gauges }) => [
        iso(at),
        ...['claims', 'replays', 'joined', 'conflicts'].map((name) => (perSecond[name] ?? 0).toFixed(2)),
        latencyMs['request']?.p95?.toFixed(1) ?? null,
        gauges['pending'] ?? 0,
        wentWrong(perSecond, seconds),
      ])
    const names = ['at', 'first/s', 'replays/s', 'joined/s', 'key reused/s', 'request p95 ms', 'outbox', 'went wrong']
    return table(names, lines, 'Nothing happened in this time, or no server kept it.')
  },
  checklist: ({ routes, open }) => {
    const width = Math.max(...Object.values(checklist).map((question) => question.length))
    const lines = routes.flatMap(({ method, path, answers }) => [
      paint('bold', `${method} ${path}`),
      ...answers.map(({ question, answer }) => {
        return `  ${question.padEnd(width)}  ${answer === null ? paint('red', 'OPEN') : plain(answer)}`
      }),
    ])
    const text = [...lines, `${routes.length} routes, ${open.length} answers are open`].join('\n')
    return { text, status: open.length === 0 ? 0 : 1 }
  },
}

import { DAY, defaults, HOUR, MINUTE, SECOND } from '../core/limits.ts'
import type { RouteDefinition } from './route.ts'
import { DEFAULT_KEY_HEADER } from './route.ts'

/** A route as it is served. */
export interface ServedRoute {
  readonly method: string
  /** As OpenAPI writes it: `/cases/{id}`. */
  readonly path: string
  // oxlint-disable-next-line typescript/no-explicit-any -- the framework's request does not matter here.
  readonly definition: RouteDefinition<any>
}

/** One question of the design checklist. A null answer is open: somebody has to think about it. */
export interface DesignAnswer {
  readonly question: string
  readonly answer: string | null
}

/** Every route can answer for its design: from its definition, or from what its author wrote down in `about`. */
export function describe({ definition }: ServedRoute): readonly DesignAnswer[] {
  const { about = {} } = definition
  const rows: [string, string | null | undefined][] = [
    ['Is a key required?', keyAnswer(definition)],
    ['What is its scope?', `tenant, caller, ${definition.name ?? 'method and path'}, key`],
    ['What is fingerprinted?', fingerprintAnswer(definition)],
    ['How long is it kept?', retentionAnswer(definition)],
    ['What happens while it runs?', runningAnswer(definition)],
    ['How is it replayed?', replayAnswer(definition)],
    [
      'Is authorisation rechecked?',
      definition.authorize === undefined
        ? 'by the route’s own authentication, before the key is looked at'
        : 'yes, with the current request, before every replay',
    ],
    ['Is business uniqueness enforced?', about.businessUniqueness],
    ['Is the outbox dedup-safe?', about.outbox],
    ['Are external calls idempotent or reconciled?', externalAnswer(definition)],
    ['Which metrics?', 'claims, replays, in-progress answers, conflicts, expired retries and unknowns, by operation'],
    ['Where is it documented?', about.summary],
    ['Which concurrency tests?', about.tests],
    ['Which clean-up?', 'expired records are swept, lapsed leases reconciled, by themselves'],
  ]
  return rows.map(([question, answer]) => ({ question, answer: answer ?? null }))
}

type Definition = ServedRoute['definition']

function keyAnswer({ key = 'required', keyFrom = { header: DEFAULT_KEY_HEADER } }: Definition): string {
  const where = 'header' in keyFrom ? `the header ${keyFrom.header}` : `the field ${keyFrom.field}`
  switch (key) {
    case 'required':
      return `yes, in ${where}`
    case 'optional':
      return `no; with one in ${where} the request is protected`
    case 'guarded':
      return `no; without one in ${where} the content guard decides`
  }
}

function fingerprintAnswer({ fingerprint, shape = 1 }: Definition): string {
  const body = fingerprint === undefined ? 'the whole body' : `chosen fields of the body (shape ${shape})`
  return `method, path, query, preconditions, content type and ${body}`
}

function retentionAnswer({ retainMs = defaults.retainMs, afterExpiry = 'new', refuseMs }: Definition): string {
  const after = afterExpiry === 'new' ? 'a new key afterwards' : `refused for ${span(refuseMs ?? retainMs)} afterwards`
  return `${span(retainMs)} from settling; ${after}`
}

function runningAnswer({ whileRunning = { waitMs: defaults.waitMs } }: Definition): string {
  if (whileRunning === 'conflict') return '409 at once, with Retry-After'
  if (whileRunning === 'accept') return '202 with the location of its status'
  return `waits up to ${span(whileRunning.waitMs)}, then 409 with Retry-After`
}

function replayAnswer({ keep = 'response' }: Definition): string {
  if (keep === 'response') return 'status, kept headers and body, byte for byte'
  return keep === 'pointer' ? 'rebuilt from a pointer, with current rights' : 'status and location only'
}

function externalAnswer({ effect, probe, about }: Definition): string | null {
  if (about?.externalCalls !== undefined) return about.externalCalls
  if (effect === 'transaction') return 'there are none: everything commits in one transaction'
  if (effect === 'repeatable') return 'the effect is safe to repeat'
  return probe === undefined ? null : 'unknown outcomes are probed'
}

function span(ms: number): string {
  for (const [unit, name] of [
    [DAY, 'd'],
    [HOUR, 'h'],
    [MINUTE, 'min'],
    [SECOND, 's'],
  ] as const) {
    if (ms >= unit && ms % unit === 0) return `${ms / unit} ${name}`
  }
  return `${ms} ms`
}

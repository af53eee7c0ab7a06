import { DAY, defaults, HOUR, MINUTE, SECOND } from '../../ledger/core/limits.ts'
import type { BulkDefinition } from './bulk.ts'
import { CONTENT_WITHIN_MS } from './content-options.ts'
import type { RouteDefinition, RouteNotes } from './route.ts'
import { DEFAULT_KEY_HEADER } from './route.ts'

/** A route as it is served, and what makes it safe to repeat. */
export type ServedRoute = CommandRoute | BatchRoute | NaturalRoute

interface Served {
  readonly method: string
  /** As OpenAPI writes it: `/cases/{id}`. */
  readonly path: string
}

/** One command under one key: what every adapter's protected route carries as its `definition`. */
export interface CommandRoute extends Served {
  readonly kind: 'command'
  // oxlint-disable-next-line typescript/no-explicit-any -- the framework's request does not matter here.
  readonly definition: RouteDefinition<any>
}

/** Many commands in one request, each under a key of its own: `createBulk` carries its `definition`. */
export interface BatchRoute extends Served {
  readonly kind: 'batch'
  readonly definition: BulkDefinition
}

/** A route without a key, because its author says what a repetition does. */
export interface NaturalRoute extends Served {
  readonly kind: 'natural'
  readonly about: NaturalNotes
}

export interface NaturalNotes extends RouteNotes {
  /** What a second, identical request does, and why that is harmless. */
  readonly repeats: string
}

/** The design checklist: questions to answer before serving a route that changes something. */
export const checklist = {
  key: 'Is a key required?',
  scope: 'What is its scope?',
  fingerprint: 'What is fingerprinted?',
  retention: 'How long is it kept?',
  running: 'What happens while it runs?',
  replay: 'How is it replayed?',
  authorization: 'Is authorisation rechecked?',
  uniqueness: 'Is business uniqueness enforced?',
  outbox: 'Is the outbox dedup-safe?',
  external: 'Are external calls idempotent or reconciled?',
  metrics: 'Which metrics?',
  documentation: 'Where is it documented?',
  tests: 'Which concurrency tests?',
  cleanup: 'Which clean-up?',
} as const

export type ChecklistTopic = keyof typeof checklist

/** One question of the design checklist. A null answer is open. */
export interface DesignAnswer {
  readonly topic: ChecklistTopic
  readonly question: string
  readonly answer: string | null
}

/** A missing answer. */
export interface OpenAnswer extends Served {
  readonly topic: ChecklistTopic
  readonly question: string
}

type Answers = Readonly<Record<ChecklistTopic, string | null | undefined>>

/** Every route can answer for its design: from its definition, or from what its author wrote down in `about`. */
export function describe(route: ServedRoute): readonly DesignAnswer[] {
  const answers = answersOf(route)
  return topics.map((topic) => {
    const answer = answers[topic]?.trim()
    // A blank answer is none.
    return { topic, question: checklist[topic], answer: answer === undefined || answer === '' ? null : answer }
  })
}

/**
 * What is still open, over all routes; empty when every route passes.
 *
 * @example
 * ```ts
 * import { openAnswers } from 'onceonly/openapi'
 *
 * const definition = { name: 'order.place', effect: 'transaction' } as const
 * for (const { question } of openAnswers([{ kind: 'command', method: 'POST', path: '/orders', definition }])) {
 *   console.log(question)
 * }
 * ```
 */
export function openAnswers(routes: readonly ServedRoute[]): readonly OpenAnswer[] {
  return routes.flatMap((route) => {
    const { method, path } = route
    const open = describe(route).filter(({ answer }) => answer === null)
    return open.map(({ topic, question }) => ({ method, path, topic, question }))
  })
}

const topics = Object.keys(checklist) as readonly ChecklistTopic[]

function answersOf(route: ServedRoute): Answers {
  switch (route.kind) {
    case 'command':
      return commandAnswers(route.definition)
    case 'batch':
      return batchAnswers(route.definition)
    case 'natural':
      return naturalAnswers(route.about)
  }
}

function commandAnswers(definition: CommandRoute['definition']): Answers {
  return {
    ...notes(definition.about),
    key: keyAnswer(definition),
    scope: `tenant, caller, ${definition.name ?? 'method and path'}, key`,
    fingerprint: fingerprintAnswer(definition),
    retention: retentionOf(definition),
    running: runningAnswer(definition),
    replay: replayAnswer(definition),
    authorization:
      definition.authorize === undefined
        ? 'by the route’s own authentication, before the key is looked at'
        : 'yes, with the current request, before every replay',
    external: externalAnswer(definition),
    metrics: 'claims, replays, in-progress answers, conflicts, expired retries and unknowns, by operation',
    cleanup: 'expired records are swept, lapsed leases reconciled, by themselves',
  }
}

function batchAnswers(definition: BulkDefinition): Answers {
  const { name, fingerprint, shape = 1 } = definition
  return {
    ...notes(definition.about),
    key: 'yes, a batchId and an itemKey for every item; a key in a header is refused',
    scope: `tenant, caller, ${name}, batchId, itemKey`,
    fingerprint: fingerprint === undefined ? 'the whole item' : `chosen fields of the item (shape ${shape})`,
    retention: retentionOf(definition),
    running: 'an item that still runs is answered IN_PROGRESS; the others are not held up',
    replay: 'item by item, from the record of each; the answer for the batch is never recorded',
    authorization: 'by the route’s own authentication, before any item is looked at',
    external: externalAnswer(definition),
    metrics: 'claims, replays, in-progress answers, conflicts, expired retries and unknowns, by operation',
    cleanup: 'expired records are swept, lapsed leases reconciled, by themselves',
  }
}

function naturalAnswers(about: NaturalNotes): Answers {
  return {
    ...notes(about),
    key: about.repeats.trim() === '' ? null : `no: ${about.repeats}`,
    scope: 'the resource that the path names',
    fingerprint: 'nothing: there is no key that could be used twice',
    retention: 'nothing is kept',
    running: 'requests at the same time are put in order by the store, and the last one stands',
    replay: 'not at all: it is carried out again',
    authorization: 'yes, every request is authenticated again',
    external: about.externalCalls ?? 'there are none',
    metrics: 'requests, by route and status',
    cleanup: 'there is nothing to clean up',
  }
}

type Notes = Pick<Answers, 'uniqueness' | 'outbox' | 'documentation' | 'tests'>

function notes({ businessUniqueness, outbox, documentation, tests }: RouteNotes = {}): Notes {
  return { uniqueness: businessUniqueness, outbox, documentation, tests }
}

function keyAnswer(definition: CommandRoute['definition']): string {
  const { key = 'required', content, keyFrom = { header: DEFAULT_KEY_HEADER } } = definition
  const where = 'header' in keyFrom ? `the header ${keyFrom.header}` : `the field ${keyFrom.field}`
  if (key === 'required') return `yes, in ${where}`
  if (content === undefined) return `no; with one in ${where} the request is protected`
  const { withinMs = CONTENT_WITHIN_MS, scope = 'tenant' } = content
  return `no; without one in ${where} equal contents of a ${scope} are one request for ${span(withinMs)}`
}

function fingerprintAnswer({ fingerprint, shape = 1 }: CommandRoute['definition']): string {
  const body = fingerprint === undefined ? 'the whole body' : `chosen fields of the body (shape ${shape})`
  return `method, path, query, preconditions, content type and ${body}`
}

type Retention = Pick<CommandRoute['definition'], 'retainMs' | 'afterExpiry' | 'refuseMs'>

/** The lifetime of a key, in words. */
export function retentionOf({ retainMs = defaults.retainMs, afterExpiry = 'new', refuseMs }: Retention): string {
  const after = afterExpiry === 'new' ? 'a new key afterwards' : `refused for ${span(refuseMs ?? retainMs)} afterwards`
  return `${span(retainMs)} from settling; ${after}`
}

function runningAnswer({ respondAsync = false, ...definition }: CommandRoute['definition']): string {
  return (
    twinAnswer(definition) + (respondAsync ? '; a caller that prefers respond-async gets 202 with its location' : '')
  )
}

function twinAnswer({
  whileRunning = { waitMs: defaults.waitMs },
}: Pick<RouteDefinition<never>, 'whileRunning'>): string {
  if (whileRunning === 'conflict') return '409 at once, with Retry-After'
  if (whileRunning === 'accept') return '202 with the location of its status'
  return `waits up to ${span(whileRunning.waitMs)}, then 409 with Retry-After`
}

function replayAnswer({ keep = 'response' }: CommandRoute['definition']): string {
  if (keep === 'response') return 'status, kept headers and body, byte for byte'
  return keep === 'pointer' ? 'rebuilt from a pointer, with current rights' : 'status and location only'
}

type Effect = Pick<CommandRoute['definition'], 'effect' | 'about'> & { readonly probe?: unknown }

function externalAnswer({ effect, probe, about }: Effect): string | null {
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

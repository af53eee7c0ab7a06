import { isOnceError, OnceError } from '../../ledger/core/errors.ts'
import { checkIdentity } from '../../ledger/core/identity.ts'
import type { IncomingMessage } from '../inbox/port.ts'
import type { Machine } from './machine.ts'
import { topicsOf } from './machine.ts'
import type { Taken } from './pending.ts'

/** A message that was understood: which event it is, and for which instance. */
export interface Arrival {
  readonly event: string
  readonly id: string
  readonly body: unknown
  /** Of a timeout or a deferred event: only the row under this token makes it one. */
  readonly token: string | null
}

export type Route =
  | { readonly kind: 'arrival'; readonly arrival: Arrival }
  | { readonly kind: 'lost'; readonly error: unknown }

const TOKEN = 'onceonly-saga-token'
const INSTANCE = 'onceonly-saga-id'
const EVENT = 'onceonly-saga-event'

/** How the saga hands a due row to itself: as a message, so that it takes the way of all messages. */
export function messageOf(machine: Machine, { token, id, event, body, deliveries }: Taken): IncomingMessage {
  return {
    id: `saga.${machine.name}.${token}`,
    topic: `saga.${machine.name}`,
    key: id,
    sequence: null,
    body,
    headers: { [TOKEN]: token, [INSTANCE]: id, [EVENT]: event },
    deliveries,
  }
}

/** Of a message that a saga has sent to itself; null for those of others. */
export function tokenOf({ headers }: Pick<IncomingMessage, 'headers'>): string | null {
  return headers?.[TOKEN] ?? null
}

/** Never throws: what cannot be understood is a message that can be parked. */
export type Router = (message: IncomingMessage, readBody?: () => unknown) => Route

export function createRouter(machine: Machine): Router {
  const events = new Map<string, string>()
  for (const [event, spec] of machine.events) for (const topic of topicsOf(event, spec)) events.set(topic, event)

  function arrivalOf(message: IncomingMessage, readBody: () => unknown): Arrival {
    const { topic, headers } = message
    const token = tokenOf(message)
    const event = token === null ? events.get(topic) : headers[EVENT]
    const spec = event === undefined ? undefined : machine.events.get(event)
    if (event === undefined || spec === undefined) {
      throw new OnceError('bad_input', `The saga ${machine.name} has no event under the topic ${topic}.`)
    }
    const body = spec.parse(readBody())
    const id = token === null && spec.kind === 'event' ? spec.correlate(body) : headers[INSTANCE]
    checkId(machine, event, id)
    return { event, id, body, token }
  }

  return (message, readBody = () => JSON.parse(message.body) as unknown) => {
    try {
      return { kind: 'arrival', arrival: arrivalOf(message, readBody) }
    } catch (error) {
      return { kind: 'lost', error }
    }
  }
}

function checkId(machine: Machine, event: string, id: string | undefined): asserts id is string {
  try {
    checkIdentity({ tenant: '*', caller: '*', operation: machine.name, key: id as string })
  } catch (cause) {
    if (!isOnceError(cause, 'bad_identity')) throw cause
    const text = `${event} names no instance of the saga ${machine.name}: its id must be a short text.`
    throw new OnceError('bad_input', text, { cause, details: { saga: machine.name, event } })
  }
}

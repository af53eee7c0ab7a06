import { BaseError } from '../../ledger/core/base-error.ts'
import type { Timer } from '../../runtime/runtime.ts'
import type { Pending } from '../parts/sender.ts'
import { isStreamName } from '../protocol/fields.ts'
import type { LogPlace, MessageIdentity, ServerFrame } from '../protocol/protocol.ts'
import { closeCodes, identityText } from '../protocol/protocol.ts'
import { sessionLimits } from '../session-limits.ts'
import { checkClientOptions } from './check-options.ts'
import type { Connection } from './connection.ts'
import { createConnection } from './connection.ts'
import { StreamError } from './errors.ts'
import { createIntake } from './intake.ts'
import type { Lines } from './line.ts'
import { createLines } from './line.ts'
import { createMemoryStorage } from './memory-storage.ts'
import type { ClientStatus, StreamClient, StreamClientOptions } from './options.ts'
import type { Outgoing } from './outgoing.ts'
import { createOutgoing } from './outgoing.ts'
import type { ClientIdentity, PendingSend } from './ports.ts'
import { partPending, type RenewCause, renumbered } from './renewal.ts'
import type { ClientRuntime } from './runtime.ts'
import { createClientRuntime } from './runtime.ts'
import { checkSendable } from './sendable.ts'

/** Failed connections before the next region is tried. */
const PATIENCE = 2
/** Of the wait before the next connection; far past its cap, and short of what a number can hold. */
const DOUBLINGS_MOST = 16

/**
 * Enters a room: sends messages, and delivers those of the others once, after their causes, through lost connections.
 *
 * @example
 * ```ts
 * import { createMemoryStorage, createStreamClient, createWebSocketTransport } from 'onceonly/stream'
 *
 * const client = await createStreamClient({
 *   room: 'lobby',
 *   regions: ['eu', 'us'],
 *   transport: createWebSocketTransport({ url: (region) => `wss://${region}.example.com/socket` }),
 *   receiver: { message: (entry) => console.log(entry.body) },
 *   mode: 'at-least-once',
 *   storage: createMemoryStorage(),
 * })
 * const sent = await client.send('Hello')
 * await sent.accepted
 * ```
 */
export async function createStreamClient(options: StreamClientOptions): Promise<StreamClient> {
  checkClientOptions(options)
  const { transport, runtime = createClientRuntime() } = options
  const bounds = { ...sessionLimits, ...options.bounds }
  return openClient({ ...options, runtime }, createLines({ transport, runtime, bounds }))
}

/** What a client of a room is made of, once it is known how it reaches its regions. */
export type RoomClientOptions = Omit<StreamClientOptions, 'transport'> & {
  readonly runtime: ClientRuntime
  /** The client was stopped. */
  left?(): void
}

/** The client of one room, on connections that it may share with those of other rooms. */
export async function openClient(options: RoomClientOptions, lines: Lines): Promise<StreamClient> {
  const { room, regions, receiver, mode, runtime } = options
  // Every connection would refuse it again.
  const odd = [room, ...regions].find((each) => !isStreamName(each))
  if (odd !== undefined)
    throw new BaseError('bad_option', `${JSON.stringify(odd)} is not a name of a room or a region.`)
  const bounds = { ...sessionLimits, ...options.bounds }
  const storage = options.storage ?? createMemoryStorage()
  const instance = runtime.newId()
  const problem = (error: unknown) => options.onProblem?.(error)

  const record = await storage.load()
  let identity: ClientIdentity = record?.identity ?? newIdentity(runtime)
  let fresh = record === null
  let status: ClientStatus = 'connecting'
  let region = regions[0] ?? ''
  let previousRegion: string | null = null
  let connection: Connection | null = null
  /** The region has let this connection in, and so has the one before it. */
  let admitted = false
  let refusal: string | null = null
  let failures = 0
  let timer: Timer | null = null
  /** Connecting writes to the storage first; after that write only the latest attempt continues. */
  let attempt = 0
  let renewing = false
  /**
   * What is kept about identity, numbers and acknowledgements is written one after the other: each builds on the last.
   */
  let writes: Promise<unknown> = Promise.resolve()
  const waiting = new Map<number, PromiseWithResolvers<LogPlace | null>>()

  const intake = createIntake({
    receiver,
    mode,
    storage,
    runtime,
    bounds,
    problem,
    restored: record?.position ?? { logs: {}, ordered: 0 },
    replay: options.again === 'replay',
  })
  let outgoing = out(record ?? { next: 1, pending: [], acknowledged: null }, record !== null)

  function out(restored: Parameters<typeof createOutgoing>[0]['restored'], mayHaveLeft: boolean): Outgoing {
    return createOutgoing({
      storage,
      bounds,
      restored,
      mayHaveLeft,
      done(number, at) {
        waiting.get(number)?.resolve(at)
        waiting.delete(number)
      },
    })
  }

  function write<T>(work: () => Promise<T>): Promise<T> {
    const written = writes.then(work)
    writes = written.catch(() => {})
    return written
  }

  function beginsAtHead(): boolean {
    return fresh && options.from === 'head'
  }

  function become(next: ClientStatus): void {
    if (status === next || status === 'stopped') return
    status = next
    options.onStatus?.(next)
  }

  function connect(): void {
    if (status === 'stopped' || renewing) return
    timer?.cancel()
    connection?.close()
    connection = null
    become('connecting')
    const mine = ++attempt
    identity = { ...identity, generation: identity.generation + 1 }
    write(() => storage.identify(identity))
      .then(() => {
        if (mine === attempt && status !== 'stopped') open()
      })
      .catch((error: unknown) => {
        problem(error)
        if (mine === attempt) later()
      })
  }

  function open(): void {
    const { client, epoch, generation } = identity
    const opened: Connection = createConnection({
      lines,
      region,
      bounds,
      hello: { room, client, epoch, generation, instance },
      // Right behind the hello, which saves a round trip. Only a client that begins at the head must first learn its
      // position.
      opened: () => {
        if (opened === connection && !beginsAtHead()) resume(opened)
      },
      // Frames from an older connection are ignored.
      received: (frame) => {
        if (opened === connection) take(frame, opened)
      },
      overtaken: () => {
        if (opened === connection) resume(opened)
      },
      closed: (code, reason) => {
        if (opened === connection) closed(code, reason)
      },
    })
    connection = opened
    admitted = false
  }

  function closed(code: number | null, reason: string): void {
    connection = null
    refusal = code === closeCodes.notAllowed ? reason : null
    if (code === closeCodes.cloned) return renew({ why: 'cloned' })
    // Generations only grow: a session with a later one belongs to another client with this identity.
    if (code === closeCodes.fenced && !admitted) return renew({ why: 'fenced' })
    problem(
      new BaseError('retry_later', `The connection to ${region} ended: ${reason}.`, {
        next: 'The client reconnects by itself.',
      }),
    )
    failures += 1
    if (failures % PATIENCE === 0) region = regions[(regions.indexOf(region) + 1) % regions.length] ?? region
    become('connecting')
    later()
  }

  function later(): void {
    const doublings = Math.min(Math.max(0, failures - 1), DOUBLINGS_MOST)
    const wholeMs = Math.min(bounds.reconnectCapMs, bounds.reconnectBaseMs * 2 ** doublings)
    timer?.cancel()
    // At least half of it, at random: all clients must not reconnect at once to a region that comes back.
    timer = runtime.setTimer(wholeMs * (0.5 + runtime.random() / 2), connect, true)
  }

  function take(frame: ServerFrame, from: Connection): void {
    switch (frame.kind) {
      case 'welcome':
        if (beginsAtHead()) {
          intake.begin({ logs: frame.position, ordered: 0 })
          resume(from)
        }
        fresh = false
        return
      case 'resumed':
        // Numbers that this client never sent are in use: another client continues from a copy of its storage.
        if (frame.floor > outgoing.sentBelow) return renew({ why: 'fenced' })
        failures = 0
        refusal = null
        admitted = true
        previousRegion = region
        // On a second resume over the same connection everything has been sent on it already.
        if (!from.live) outgoing.reconnected()
        from.resumed()
        become('live')
        // Its floor accepts nothing: what stands below it may be a copy's. What is pending is sent again, and compared.
        return acknowledge([], frame.last)
      case 'deliver':
        if (frame.generation !== identity.generation) return
        if (intake.deliver(frame.entries, () => from.taken()) === 'jump') resume(from)
        return
      case 'order':
        if (frame.generation !== identity.generation) return
        if (intake.order(frame) === 'jump') resume(from)
        return
      case 'ack':
        return acknowledge(frame.results, frame.results.at(-1)?.place ?? null)
      case 'nack':
        return renew({ why: frame.why === 'fork' ? 'fork' : 'refused', cseq: frame.cseq })
      case 'lag':
        return become(Object.keys(frame.missing).length > 0 ? 'lagging' : 'live')
      case 'reset':
        if (frame.why === 'unknown') return renew({ why: 'unknown' })
        intake.reset(frame)
        return resume(from)
      // The line reads these.
      case 'ended':
      case 'pong':
    }
  }

  /** Requests everything from the position on. Frames under way are ignored until the answer comes. */
  function resume(to: Connection): void {
    const { logs: position, ordered } = intake.position
    const { pendingFrom, acknowledged } = outgoing
    to.resume({ kind: 'resume', position, ordered, pendingFrom, acknowledged, previousRegion })
  }

  function acknowledge(...answer: Parameters<Outgoing['acknowledge']>): void {
    const mine = outgoing
    write(async () => {
      // An identity that was given up has nothing left to acknowledge.
      if (mine !== outgoing) return
      await mine.acknowledge(...answer)
      flush()
    }).catch(problem)
  }

  function flush(): void {
    if (connection?.live !== true) return
    for (const frame of outgoing.frames()) connection.send(frame)
  }

  /**
   * Takes a new identity and moves the pending messages to it. Messages that may have arrived under the old one are
   * only reported.
   */
  function renew(cause: RenewCause): void {
    if (renewing || status === 'stopped') return
    renewing = true
    connection?.close()
    connection = null
    write(() => takeIdentity(cause))
      .catch(problem)
      .finally(() => {
        renewing = false
        connect()
      })
  }

  async function takeIdentity(cause: RenewCause): Promise<void> {
    const { carried, doubtful, refused } = partPending(outgoing, cause)
    const { why } = cause
    const isSame = why === 'unknown' || why === 'refused'
    const next = isSame ? { ...identity, epoch: identity.epoch + 1 } : newIdentity(runtime)
    const renewed = renumbered(carried, outgoing.acknowledged, { from: identity, to: next })
    await storage.renew(next, renewed)
    identity = next
    const promises = carried.map(({ number }) => waiting.get(number))
    for (const { number } of doubtful) waiting.get(number)?.reject(doubt())
    if (refused !== null) refuse(refused)
    waiting.clear()
    for (const [index, promise] of promises.entries()) if (promise !== undefined) waiting.set(index + 1, promise)
    outgoing = out({ next: renewed.length + 1, pending: renewed, acknowledged: null }, false)
    options.onIdentity?.({ client: next.client, epoch: next.epoch }, why)
    if (doubtful.length > 0)
      options.onDoubt?.(
        doubtful.map(({ message }) => message),
        why,
      )
  }

  function refuse({ number, message: { replyTo } }: Pending<PendingSend>): void {
    // Another region may have taken it, where it has left before.
    const error = targetUnknown(replyTo, number < outgoing.sentEarlierBelow ? 'maybe' : 'no')
    waiting.get(number)?.reject(error)
    problem(error)
  }

  function targetUnknown(target: MessageIdentity | null, applied: 'no' | 'maybe'): BaseError {
    const name = target && identityText(target)
    const details = { replyTo: target }
    return new StreamError('target_unknown', `${room} has no message ${name} to reply to.`, { applied, details })
  }

  function mayReplyTo(target: MessageIdentity): boolean {
    const { client, epoch } = identity
    const isOwn = target.client === client && target.epoch === epoch
    return isOwn ? target.cseq < outgoing.next : intake.mayHaveCome(target)
  }

  /** Sent at once, a message needs no time of its own beside that of its region. */
  function whenWritten(): Pick<PendingSend, 'writtenAtMs'> {
    const writtenAtMs = status === 'live' ? undefined : runtime.wallMs?.()
    return writtenAtMs === undefined ? {} : { writtenAtMs: Math.floor(writtenAtMs) }
  }

  connect()
  return {
    room,
    get identity() {
      return { client: identity.client, epoch: identity.epoch }
    },
    get status() {
      return status
    },
    get refusal() {
      return refusal
    },
    get region() {
      return region
    },
    get position() {
      return intake.position
    },
    get pending() {
      return outgoing.pending.length
    },
    async send(body, { replyTo: target = null } = {}) {
      if (status === 'stopped') throw new BaseError('stopped', 'The client was stopped.', { next: 'Create a new one.' })
      // Whatever else an entry has is not kept.
      const replyTo = target && { client: target.client, epoch: target.epoch, cseq: target.cseq }
      if (replyTo !== null && !mayReplyTo(replyTo)) throw targetUnknown(replyTo, 'no')
      const content: PendingSend = { seen: intake.shown, replyTo, body, ...whenWritten() }
      checkSendable(content)
      const accepted = Promise.withResolvers<LogPlace | null>()
      // A caller that does not await it must not cause an unhandled rejection.
      accepted.promise.catch(() => {})
      return write(async () => {
        const { number: cseq } = await outgoing.accept(content)
        waiting.set(cseq, accepted)
        flush()
        const { client, epoch } = identity
        return { identity: { client, epoch, cseq }, accepted: accepted.promise }
      })
    },
    moveTo(to) {
      region = to
      failures = 0
      connect()
    },
    idle: () => intake.idle(),
    async stop() {
      if (status !== 'stopped') options.left?.()
      become('stopped')
      attempt += 1
      timer?.cancel()
      connection?.close()
      connection = null
      intake.stop()
      await intake.idle()
    },
  }
}

function newIdentity(runtime: ClientRuntime): ClientIdentity {
  return { client: runtime.newId(), epoch: 1, generation: 0 }
}

function doubt(): BaseError {
  return new BaseError(
    'outcome_unknown',
    'The outcome is unknown: no region remembers whether the message was accepted.',
  )
}

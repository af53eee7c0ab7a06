import { brokerLimits } from '../../../ledger/core/limits.ts'
import type { Published } from '../../outbox/port.ts'
import { startDeadline } from '../deadline.ts'
import { codeOf, reasonOf } from '../options.ts'
import type { RabbitChannel, RabbitConnection, RabbitEnvelope } from './driver.ts'

/** A channel on which every message is confirmed, opened when it is needed and again when it was lost. */
export interface Confirms {
  /** Opens the channel, so that messages that are then sent at once go out in their order. Else answers why not. */
  open(late: Promise<void>): Promise<string | null>
  /** Settles when the server has answered, or the channel is closed. */
  send(envelope: RabbitEnvelope, body: string): Promise<Published>
  stop(): Promise<void>
}

interface Open {
  readonly channel: RabbitChannel
  /** What came back, by routing key and id; a list, because copies may be under way together. */
  readonly returns: Map<string, string[]>
}

const confirmed: Published = { kind: 'confirmed' }
const blocked: Published = { kind: 'unavailable', reason: 'The broker is blocked: it is short of memory or disk.' }
const full: Published = { kind: 'unavailable', reason: `${brokerLimits.publishWindow} messages wait for confirmation.` }

/** The server's code when it closes a channel because of what was published on it. */
const unacceptable = 'PRECONDITION_FAILED'
/** The driver's code for everything else that was under way on that channel. */
const channelClosed = 'CH_CLOSE'

export function createConfirms(
  connection: RabbitConnection,
  prepare: (channel: RabbitChannel) => Promise<void>,
): Confirms {
  let opening: Promise<Open> | null = null
  let current: Open | null = null
  let underWay = 0
  let stopped = false
  // Ids of messages that shared a channel with one for which the server closed it: each goes alone the next time, so
  // that the guilty one is refused and the others are not held up by it.
  const suspects = new Set<string>()
  const returned = createTurns()

  async function openNew(): Promise<Open> {
    const channel = await connection.acquire()
    const returns = new Map<string, string[]>()
    channel.on('basic.return', ({ routingKey, messageId = '', replyText }) => {
      const place = placeOf(routingKey, messageId)
      returns.set(place, [...(returns.get(place) ?? []), replyText])
    })
    await prepare(channel)
    await channel.confirmSelect()
    return { channel, returns }
  }

  function ensure(): Promise<Open> {
    if (current?.channel.active === true) return Promise.resolve(current)
    opening ??= openNew()
      .then(async (open) => {
        if (stopped) await open.channel.close()
        return (current = open)
      })
      .finally(() => (opening = null))
    return opening
  }

  async function publishOn({ channel, returns }: Open, envelope: RabbitEnvelope, body: string): Promise<Published> {
    await channel.basicPublish(envelope, Buffer.from(body, 'utf8'))
    // A message that no queue took is returned and then confirmed. The driver reports the return one turn later.
    await returned()
    if (returns.size === 0) return confirmed
    const place = placeOf(envelope.routingKey, envelope.messageId)
    const [reason, ...others] = returns.get(place) ?? []
    if (reason === undefined) return confirmed
    if (others.length > 0) returns.set(place, others)
    else returns.delete(place)
    return { kind: 'refused', reason: `No queue took it (${reason}).` }
  }

  async function publishAlone(envelope: RabbitEnvelope, body: string): Promise<Published> {
    const open = await openNew()
    try {
      return await publishOn(open, envelope, body)
    } catch (error) {
      if (codeOf(error) === unacceptable) return { kind: 'refused', reason: reasonOf(error) }
      throw error
    } finally {
      await open.channel.close()
    }
  }

  async function attempt(envelope: RabbitEnvelope, body: string): Promise<Published> {
    const id = envelope.messageId
    try {
      const answer = suspects.has(id)
        ? await publishAlone(envelope, body)
        : await publishOn(current?.channel.active === true ? current : await ensure(), envelope, body)
      if (suspects.size > 0) suspects.delete(id)
      return answer
    } catch (error) {
      const code = codeOf(error)
      if ((code === unacceptable || code === channelClosed) && suspects.size < brokerLimits.publishWindow)
        suspects.add(id)
      return { kind: 'unavailable', reason: reasonOf(error) }
    }
  }

  return {
    async open(late) {
      const opened = ensure().then(() => null, reasonOf)
      return await Promise.race([opened, late.then(() => 'There is no connection to the broker.')])
    },
    async send(envelope, body) {
      if (current?.channel.active === true && !connection.ready) return blocked
      if (underWay >= brokerLimits.publishWindow) return full
      underWay += 1
      try {
        return await attempt(envelope, body)
      } finally {
        underWay -= 1
      }
    },
    async stop() {
      stopped = true
      const bound = startDeadline(brokerLimits.stopMs)
      await Promise.race([current?.channel.close(), bound.late])
      bound.cancel()
    },
  }
}

function placeOf(routingKey: string, messageId: string): string {
  return `${routingKey}\n${messageId}`
}

/**
 * Waits for a turn of the event loop that begins after the call. All that ask before the next turn share one wait, which
 * is over a turn later: a wait that ends with the turn of its first would end before the returns of its last.
 */
function createTurns(): () => Promise<void> {
  let next: Promise<void> | null = null
  return () => {
    next ??= new Promise((resolve) => {
      setImmediate(() => {
        next = null
        setImmediate(resolve)
      })
    })
    return next
  }
}

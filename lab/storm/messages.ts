import type { Answer } from './client.ts'
import { countOf, judgeDeeds, type System, type World } from './world.ts'

interface Row {
  readonly id: string
  readonly body: string
  readonly status: string
}

/** The answers to the clients of one text. */
interface Asked {
  readonly channel: 'webhook' | 'twilio'
  readonly ids: Set<string>
}

const PREFIX = 'Storm message'
/** Shares of the commands: half of them with a key; some from two clients at once. */
const KEYED = 0.5
const TWINS = 0.2

/**
 * Messages with keys and without, from one client or from two, to a provider that honours keys and to one that does
 * not.
 */
export function createMessages(world: World): System {
  const { clients, provider, random, apiKey } = world
  const asked = new Map<string, Asked>()
  const ends: Record<string, number> = { sent: 0, failed: 0, unknown: 0 }

  async function client(text: string, at: Asked, number: number, key: string | null): Promise<void> {
    const phone = `+49151${String(number).padStart(8, '0')}`
    const body = { channel: at.channel, recipientPhone: phone, message: text }
    const headers = key === null ? {} : { 'idempotency-key': key }
    await clients.insist({ method: 'POST', path: '/api/messages', bearer: apiKey, headers, body }, (answer) => {
      const message = messageIn(answer)
      if (message !== null) at.ids.add(message._id)
      return message !== null && message.status in ends
    })
  }

  return {
    name: 'messages',
    lanes: 12,
    async command(number) {
      const text = `${PREFIX} ${number}`
      const at: Asked = { channel: number % 2 === 0 ? 'webhook' : 'twilio', ids: new Set() }
      asked.set(text, at)
      const keyed = random.chance(KEYED)
      const people = random.chance(TWINS) ? 2 : 1
      await Promise.all(
        Array.from({ length: people }, (_, who) => client(text, at, number, keyed ? `message-${number}-${who}` : null)),
      )
    },
    async left() {
      const waiting = await countOf(world, `messages where status in ('queued', 'sending')`)
      return waiting === 0 ? [] : [`${waiting} messages are queued or being sent`]
    },
    async judge() {
      const rows = await world.cluster.sql<Row>(`select id, body, status from messages where body like '${PREFIX} %'`)
      const rowsOf = Map.groupBy(rows, ({ body }) => body)
      const wrong: string[] = []
      for (const [text, { channel, ids }] of asked) {
        const [row, ...others] = rowsOf.get(text) ?? []
        if (others.length > 0) wrong.push(`${text} was accepted ${others.length + 1} times`)
        if (ids.size > 1) wrong.push(`${text}: its clients got ${ids.size} messages`)
        if (row === undefined || !ids.has(row.id))
          wrong.push(`${text}: the message that its clients got does not exist`)
        if (row === undefined) continue
        ends[row.status] = (ends[row.status] ?? 0) + 1
        const door = channel === 'webhook' ? 'hook' : 'sms'
        const status = row.status === 'sent' ? 'done' : row.status
        wrong.push(...judgeDeeds(`${text} (${row.id})`, provider.deedsOf(door, text), status, door === 'hook'))
      }
      return wrong
    },
    figures: () => ({ commands: asked.size, ...ends }),
  }
}

function messageIn({ body }: Answer): { readonly _id: string; readonly status: string } | null {
  const { message } = body
  return typeof message === 'object' && message !== null ? (message as { _id: string; status: string }) : null
}

import assert from 'node:assert/strict'
import { until } from '../../../../src/testing/until.ts'
import type { Answer, Cluster } from '../cluster.ts'

export interface Posts {
  readonly count: number
  readonly message: string
  readonly channel: string
  /** Each post has a key of its own: the guard has to find out that they are one message. */
  readonly keyed: boolean
}

/** Identical posts at once, on the servers in turn. Each response must say that the message is, or was, accepted. */
export async function postAtOnce({ servers }: Cluster, { count, message, channel, keyed }: Posts): Promise<void> {
  const body = { channel, recipientEmail: 'storm@example.com', message }
  const answers = await Promise.all(
    Array.from({ length: count }, (_, at) => {
      const server = servers[at % servers.length]
      assert.ok(server !== undefined)
      const asked = keyed ? { key: `${message}-${at}`.replaceAll(' ', '-') } : {}
      return untilAnswered(() => server.send(body, asked))
    }),
  )
  for (const { status, text } of answers) assert.ok(status === 200 || status === 201, `${status}: ${text}`)
}

/** A machine that is too busy answers 503, which every client repeats. */
function untilAnswered(ask: () => Promise<Answer>): Promise<Answer> {
  return until('an answer that is not 503', ask, ({ status }) => status !== 503)
}

/** The operator events about a message that its lock did not protect, of all running servers. */
export function guardErrors({ servers }: Cluster): readonly unknown[] {
  return servers.flatMap((server) => server.events('message.api.duplicate_guard_error'))
}

/** How many messages of this text were accepted, and how many of them without a lock. */
export async function acceptedOf({ sql }: Cluster, message: string): Promise<{ all: number; unguarded: number }> {
  const [row] = await sql<{ n: unknown; without: unknown }>(
    `select count(*) as n, sum(case when lock_claim is null then 1 else 0 end) as without
     from messages where body = '${message}'`,
  )
  return { all: Number(row?.n), unguarded: Number(row?.without) }
}

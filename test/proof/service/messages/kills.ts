import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../../src/testing/until.ts'
import type { Answer, Cluster } from '../../../support/service/cluster.ts'
import type { MailServer } from '../../../support/service/messages/mail.ts'

/** Longer than any lease with its grace, and than the timeout of a sender that stopped responding. */
export const LEASE_MS = 36_000
/** A client gets its final answer while its content is still guarded; otherwise two messages would both be right. */
const ROUNDS_OPEN = 10
const CLIENT_MS = 120_000
const PROGRESS_EVERY_MS = 5_000

export interface KillsOptions {
  readonly sends: number
  /** How many clients begin before the next process dies. */
  readonly sendsPerKill: number
  readonly progress?: (line: string) => void
}

/** What was seen, after everything that must hold was found to hold. */
export interface Kills {
  readonly sends: number
  readonly kills: number
  /** Requests whose connection broke, so that the client had to retry. */
  readonly broken: number
  readonly requests: number
  readonly sent: number
  /** Called unknown, because their sender died while it sent. */
  readonly unknown: number
  /** Of those: how many had in fact arrived. */
  readonly unknownDelivered: number
}

interface Row {
  readonly id: string
  readonly body: string
  readonly status: string
}

/** What one client got, from its first request to its last. */
interface ClientResult {
  readonly last: Answer
  readonly messageIds: ReadonlySet<string>
}

/**
 * Processes die at random, by `kill -9`, while clients send and retry until they get a final answer; every second client
 * does it under a key. No message is delivered twice, no accepted one is forgotten, and an outcome that cannot be
 * determined is unknown.
 */
export async function sendThroughKills(cluster: Cluster, mail: MailServer, options: KillsOptions): Promise<Kills> {
  const { sends, sendsPerKill, progress = () => {} } = options
  let broken = 0
  let requests = 0
  let kills = 0
  let ended = 0
  let saidAtMs = performance.now()

  async function client(at: number): Promise<ClientResult> {
    const body = { channel: 'smtp', recipientEmail: `c${at}@example.com`, message: `Crash ${at}` }
    const asked = at % 2 === 0 ? { key: `crash-${at}` } : {}
    const messageIds = new Set<string>()
    const deadline = performance.now() + CLIENT_MS
    await sleep(Math.random() * 200)
    for (;;) {
      const answer = await anyOf(cluster.servers)
        ?.send(body, asked)
        .catch(() => null)
      requests++
      if (answer === null) broken++
      const message = answer?.body.message
      if (message) messageIds.add(message._id)
      if (answer && (message?.status === 'sent' || message?.status === 'unknown')) {
        ended++
        return { last: answer, messageIds }
      }
      if (performance.now() > deadline) throw new Error(`Client ${at} never got a final answer: ${answer?.text}`)
      await sleep(100 + Math.random() * 200)
    }
  }

  const clients: Promise<ClientResult>[] = []
  while (clients.length < sends) {
    for (let at = 0; at < sendsPerKill && clients.length < sends; at++) clients.push(client(clients.length))
    await sleep(50 + Math.random() * 250)
    await anyOf(cluster.servers)?.kill()
    kills++
    // Also for live processes: their leases lapse, and still nothing is sent twice.
    await cluster.advance(LEASE_MS)
    await cluster.add()
    await Promise.all(clients.slice(0, -ROUNDS_OPEN * sendsPerKill))
    if (performance.now() > saidAtMs + PROGRESS_EVERY_MS) {
      saidAtMs = performance.now()
      progress(`${ended} of ${sends} sends have ended, ${kills} kills, ${broken} broken requests`)
    }
  }
  const results = await Promise.all(clients)
  await cluster.advance(LEASE_MS)
  const rows = await until(
    'every message has an end',
    () => cluster.sql<Row>("select id, body, status from messages where body like 'Crash %'"),
    (seen) => seen.every(({ status }) => status !== 'queued' && status !== 'sending'),
  )
  return { sends, kills, broken, requests, ...judge(results, rows, mail) }
}

function anyOf<T>(list: readonly T[]): T | undefined {
  return list[Math.floor(Math.random() * list.length)]
}

function judge(results: readonly ClientResult[], rows: readonly Row[], mail: MailServer) {
  const counts = { sent: 0, unknown: 0, unknownDelivered: 0 }
  const rowsOf = Map.groupBy(rows, ({ body }) => body)
  assert.equal(rowsOf.size, results.length, 'messages in the database')
  for (const [at, { last, messageIds }] of results.entries()) {
    const message = `Crash ${at}`
    const [row, ...others] = rowsOf.get(message) ?? []
    assert.equal(others.length, 0, `${message} was accepted more than once`)
    assert.deepEqual([...messageIds], [row?.id], `${message}: its client got another message`)
    const delivered = mail.sentTo(message).length
    assert.ok(delivered <= 1, `${message} was delivered ${delivered} times`)
    if (last.body.message?.status === 'sent') assert.equal(delivered, 1, `${message} was called sent, and is not`)
    if (row?.status === 'sent') {
      counts.sent++
      assert.equal(delivered, 1, `${message} is called sent, and is not`)
    } else {
      assert.equal(row?.status, 'unknown')
      counts.unknown++
      counts.unknownDelivered += delivered
    }
  }
  return counts
}

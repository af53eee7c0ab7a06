import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../../src/testing/until.ts'
import type { Answer, Cluster, TestServer } from '../../../support/service/cluster.ts'
import type { MailServer } from '../../../support/service/messages/mail.ts'

/** As far apart as a double click, or a client that lost patience. */
const WIDEST_GAP_MS = 350

export interface Pairs {
  readonly count: number
  /** How far the message of a pair had come when its duplicate was answered. */
  readonly twinsSaw: Readonly<Record<string, number>>
}

/** Retries, as the response asks for, while the original is still being accepted. */
export function sendPatiently(server: TestServer, body: unknown): Promise<Answer> {
  return until(
    'the response has a message',
    () => server.send(body),
    ({ body: answer }) => answer.duplicateOnly !== true || answer.message !== null,
  )
}

/**
 * Pairs of identical requests without a key, 0 to 350 ms apart, each of the two at another process. Every pair is one
 * mail, one answer that it was sent, and one that says so of the same message.
 */
export async function sendPairs({ servers }: Cluster, mail: MailServer, count: number): Promise<Pairs> {
  const pairs = await Promise.all(
    Array.from({ length: count }, async (_, at): Promise<readonly Answer[]> => {
      const body = { recipientEmail: `pair${at}@example.com`, message: `Pair ${at}` }
      const gapMs = (at * WIDEST_GAP_MS) / Math.max(1, count - 1)
      const [first, second] = [servers[at % servers.length], servers[(at + 1) % servers.length]]
      assert.ok(first && second, 'no server runs')
      return Promise.all([sendPatiently(first, body), sleep(gapMs).then(() => sendPatiently(second, body))])
    }),
  )
  const twinsSaw: Record<string, number> = {}
  for (const [at, [one, two]] of pairs.entries()) {
    assert.ok(one && two)
    assert.deepEqual(new Set([one.status, two.status]), new Set([200, 201]), `pair ${at}`)
    const duplicates = [one, two].filter(({ body }) => body.duplicateOnly === true)
    assert.equal(duplicates.length, 1, `pair ${at}`)
    assert.ok(one.body.message && one.body.message._id === two.body.message?._id, `pair ${at}`)
    assert.equal(mail.sentTo(`Pair ${at}`).length, 1, `mails of pair ${at}`)
    const seen = duplicates[0]?.body.message?.status ?? ''
    twinsSaw[seen] = (twinsSaw[seen] ?? 0) + 1
  }
  return { count, twinsSaw }
}

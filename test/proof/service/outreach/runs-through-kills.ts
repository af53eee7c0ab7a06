import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../../src/testing/until.ts'
import type { Cluster, TestServer } from '../../../support/service/cluster.ts'
import type { MailServer } from '../../../support/service/messages/mail.ts'
import { makeLead, resolve, runNow, type SeenRun, start, store } from '../../../support/service/outreach/outreach.ts'
import { LEASE_MS } from '../messages/kills.ts'

export interface RunKillsOptions {
  readonly runs: number
  readonly kills: number
  /** How long the runs may take after the last kill. */
  readonly boundMs?: number
  /** A share of the runs begins before each kill, so that every one meets runs under way; else all begin at once. */
  readonly spread?: boolean
  readonly progress?: (kills: number) => void
}

/** What was seen, after everything that must hold was found to hold. */
export interface RunKills {
  /** Steps that were called unknown, because their sender died while it sent. */
  readonly unknown: number
  /** Of those: how many had in fact arrived. */
  readonly unknownDelivered: number
}

const MAILS = ['first', 'second', 'third'] as const

/**
 * Processes die at random, by `kill -9`, in the middle of sequences. No mail arrives twice, every run comes to its end,
 * and an outcome that cannot be determined is unknown until an operator has looked into the mailbox.
 */
export async function runThroughKills(cluster: Cluster, mail: MailServer, options: RunKillsOptions): Promise<RunKills> {
  const [server] = cluster.servers as [TestServer]
  const sequence = await store(
    server,
    'Kills',
    MAILS.flatMap((id) => [
      { id, type: 'email', template: `${id} to {{lead.email}}` },
      { id: `after-${id}`, type: 'wait', ms: 50 },
    ]),
  )
  const addresses = Array.from({ length: options.runs }, (_, at) => `kill${at}@example.com`)
  const leads = await Promise.all(addresses.map((recipientEmail) => makeLead(server, { recipientEmail })))
  const runIds: string[] = []
  const share = options.spread === true ? Math.ceil(options.runs / options.kills) : options.runs
  for (let kill = 0; kill < options.kills; kill++) {
    const [living] = cluster.servers as [TestServer]
    const begun = leads.slice(runIds.length, runIds.length + share).map((lead) => start(living, sequence, lead))
    runIds.push(...(await Promise.all(begun)))
    await sleep(100 + Math.random() * 300)
    await cluster.servers[Math.floor(Math.random() * cluster.servers.length)]?.kill()
    await cluster.add()
    await cluster.advance(LEASE_MS)
    options.progress?.(kill + 1)
  }
  const counts = { unknown: 0, unknownDelivered: 0 }
  await Promise.all(runIds.map(async (runId, at) => ended(runId, addresses[at] ?? '')))
  const [last] = cluster.servers as [TestServer]
  for (const [at, runId] of runIds.entries()) {
    const { steps } = await runNow(last, runId)
    assert.deepEqual(
      steps.map(({ id, state }) => [id, state]),
      MAILS.flatMap((id) => [id, `after-${id}`]).map((id) => [id, 'succeeded']),
    )
    for (const { id, result } of steps.filter(({ type }) => type === 'email')) {
      const delivered = mail.sentTo(`${id} to ${addresses[at]}`).length
      assert.ok(delivered <= 1, `${id} of ${runId} was delivered ${delivered} times`)
      if (result?.['looked'] !== true) assert.equal(delivered, 1, `${id} of ${runId} is called sent, and is not`)
      else if (result['delivered'] !== delivered) await mustBeLate(`${id} to ${addresses[at]}`)
    }
  }
  return counts

  /**
   * The clock also jumps for live processes, so that a sender may be given up while it still speaks to the mail server:
   * its mail arrives after the operator has looked. A second sender would mean a mail that was sent again.
   */
  async function mustBeLate(body: string): Promise<void> {
    const rows = await cluster.sql<{ tries: number }>(`select tries from messages where body = '${body}'`)
    assert.deepEqual(
      rows.map(({ tries }) => Number(tries)),
      [1],
      `${body} was sent again after it was resolved`,
    )
  }

  /** Drives the time until the run has ended; a step that is unknown is settled by looking into the mailbox. */
  async function ended(runId: string, address: string): Promise<SeenRun> {
    const giveUpMs = performance.now() + (options.boundMs ?? 0)
    for (;;) {
      try {
        return await looked(runId, address)
      } catch (error) {
        // The lab has so many runs that some of them end later than anything is waited for here.
        if (performance.now() > giveUpMs) throw error
      }
    }
  }

  function looked(runId: string, address: string): Promise<SeenRun> {
    return until(
      `the end of ${runId}`,
      async () => {
        const [now] = cluster.servers as [TestServer]
        const run = await runNow(now, runId)
        // A message whose sender vanished becomes unknown after a while; until then it may still come right.
        if (run.state !== 'unknown') return run
        const step = run.steps.find(({ state }) => state === 'unknown')
        const [row] = await cluster.sql<{ status: string }>(
          `select status from messages where body = '${step?.id} to ${address}'`,
        )
        if (step === undefined || row?.status !== 'unknown') return run
        const delivered = mail.sentTo(`${step.id} to ${address}`).length
        counts.unknown++
        counts.unknownDelivered += delivered
        await resolve(now, run, step.id, { kind: 'succeeded', result: { looked: true, delivered } })
        return run
      },
      ({ state }) => state === 'succeeded',
    )
  }
}

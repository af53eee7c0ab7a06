import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { holdTable, whenHeld } from '../../support/service/break.ts'
import { type Cluster, onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { type MailServer, startMail } from '../../support/service/messages/mail.ts'
import { makeLead, resolve, start, store, untilState } from '../../support/service/outreach/outreach.ts'
import { LEASE_MS } from './messages/kills.ts'
import { runThroughKills } from './outreach/runs-through-kills.ts'

const RUNS = 6
const KILLS = 3

onEveryPlace('crashes of outreach', (place) => {
  let mail: MailServer
  let cluster: Cluster
  before(async () => {
    mail = await startMail(() => Math.random() * 120)
    const env = { ONCEONLY_SMTP_URL: mail.url, ONCEONLY_SEND_TIMEOUT_MS: '5000' }
    cluster = await openCluster(place, { env })
  })
  after(async () => {
    await cluster[Symbol.asyncDispose]()
    await mail[Symbol.asyncDispose]()
  })

  test('a process that dies while a step sends leaves it unknown, never a second mail', async () => {
    // Alone until it dies: with another process beside it, either of the two may take the run.
    const [one] = cluster.servers as [TestServer]
    const sequence = await store(one, 'Held', [
      { id: 'mail', type: 'email', template: 'Held {{lead.id}}' },
      { id: 'next', type: 'email', template: 'Next {{lead.id}}' },
    ])
    const lead = await makeLead(one, { recipientEmail: 'held@example.com' })
    const runId = await start(one, sequence, lead)
    await until(
      'the mail',
      () => mail.sentTo(`Held ${lead}`).length,
      (count) => count === 1,
    )
    await one.kill()
    const two = await cluster.add()
    await cluster.advance(LEASE_MS)
    const unknown = await untilState(two, runId, 'unknown')
    assert.deepEqual(
      unknown.steps.map(({ id, state }) => [id, state]),
      [['mail', 'unknown']],
    )
    mail.letGo()
    assert.equal((await resolve(two, unknown, 'mail', { kind: 'succeeded' })).status, 200)
    await untilState(two, runId, 'succeeded')
    assert.deepEqual(
      [`Held ${lead}`, `Next ${lead}`].map((subject) => mail.sentTo(subject).length),
      [1, 1],
    )
  })

  test('a process that dies between the mail and its record: the next one finds the message, and continues', async () => {
    const [one] = cluster.servers as [TestServer]
    const sequence = await store(one, 'Unrecorded', [
      { id: 'unrecorded', type: 'email', template: 'Unrecorded {{lead.id}}' },
      { id: 'next', type: 'email', template: 'After {{lead.id}}' },
    ])
    const lead = await makeLead(one, { recipientEmail: 'unrecorded@example.com' })
    const condition = "new.step_id = 'unrecorded' and new.state = 'succeeded'"
    const mend = await holdTable(cluster, place, 'onceonly_run_steps', condition)
    const runId = await start(one, sequence, lead)
    // On a busy machine any write may look held: what counts is one that comes after the message is known to be sent.
    await until(
      'the message is sent',
      () => cluster.sql<{ status: string }>(`select status from messages where body = 'Unrecorded ${lead}'`),
      ([row]) => row?.status === 'sent',
    )
    await whenHeld(cluster, place)
    assert.equal(mail.sentTo(`Unrecorded ${lead}`).length, 1)
    await one.kill()
    // What the killed process could not write must stay unwritten: its session on the server would still write it.
    if (place === 'postgres') {
      await cluster.sql(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and wait_event = 'PgSleep'`,
      )
    }
    await mend()
    const two = await cluster.add()
    await cluster.advance(LEASE_MS)
    const { steps } = await untilState(two, runId, 'succeeded')
    assert.deepEqual(
      steps.map(({ id, attempts, state }) => [id, attempts, state]),
      [
        ['unrecorded', 1, 'succeeded'],
        ['next', 1, 'succeeded'],
      ],
    )
    assert.deepEqual(
      [`Unrecorded ${lead}`, `After ${lead}`].map((subject) => mail.sentTo(subject).length),
      [1, 1],
    )
  })

  test('killed at random in the middle of sequences: no mail twice, and every run comes to its end', async () => {
    await cluster.add()
    await runThroughKills(cluster, mail, { runs: RUNS, kills: KILLS })
  })
})

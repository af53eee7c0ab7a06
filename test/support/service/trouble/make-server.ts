import assert from 'node:assert/strict'
import { limits } from 'onceonly'
import { createEngine, defineQueue, defineRun, schedule } from 'onceonly/run'
import { createMemoryStorage, createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import { claim } from '../../../../src/testing/conformance/requests.ts'
import { until } from '../../../../src/testing/until.ts'
import { quietLedger } from '../../quiet-ledger.ts'
import type { Cluster, TestServer } from '../cluster.ts'
import { upload } from '../imports/upload.ts'
import type { MailServer } from '../messages/mail.ts'
import { begin } from '../outreach/campaigns.ts'
import { makeLead, start, store, untilState } from '../outreach/outreach.ts'
import { makeTraffic, publishAs } from './make-traffic.ts'
import type { Made } from './trouble.ts'

interface World {
  readonly cluster: Cluster
  readonly mail: MailServer
}

const MINUTES = 60_000
const CALL = { timeoutMs: 60_000 }

/** Makes one case of everything, by the interfaces that users have. */
export async function makeAtServer({ cluster, mail }: World): Promise<Made<'server'>> {
  const [one, two] = cluster.servers as [TestServer, TestServer]
  // 1. What needs an hour to go wrong: it passes at once.
  const aged = await makeAged(cluster, one)
  await cluster.advance(61 * MINUTES)
  await makeTraffic(cluster, one)
  // 2. Everything else; first what an alert waits seconds for.
  return {
    ...aged,
    cutRegion: await cutRegion(one),
    ...(await makeMessages(one, two, mail)),
    ...(await makeCommands(one)),
    ...(await makeRuns(one)),
    // An event without what its readers need.
    brokenEvent: await publishAs(cluster, 'broken-1', { topic: 'SearchUploadSaved', body: { wrong: true } }),
  }
}

async function makeAged(cluster: Cluster, one: TestServer) {
  const { store: on } = cluster
  const wanted = { projectId: 'p-1', searchName: 'Never', files: ['never.ris'] }
  const missingFile = String((await one.post('/api/imports', wanted)).body['searchId'])
  const brokenFile = String((await one.post('/api/imports', { ...wanted, searchName: 'Broken' })).body['searchId'])
  await upload(one, { searchId: brokenFile }, 'never.ris', new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 0]))
  // As a process leaves it that was killed: claimed, and never settled.
  const request = claim('dead-process')
  await on.claims.apply(request, CALL)
  const failedCampaign = await loseSequence(cluster, one)
  return { missingFile, brokenFile, failedCampaign, deadProcess: request.id, ...(await makeForgotten(cluster)) }
}

/** A campaign that begins in an hour; meanwhile its sequence goes. */
async function loseSequence({ sql, now }: Cluster, one: TestServer): Promise<string> {
  const lead = await makeLead(one, { recipientEmail: 'campaign@example.com' })
  const sequenceId = await store(one, 'Gone', [{ id: 'mail', type: 'email', template: 'For {{lead.email}}' }])
  const startAt = new Date((await now()) + 60 * MINUTES).toISOString()
  await begin(one, { sequenceId, leadIds: [lead], campaignId: 'gone-1', startAt })
  await sql(`delete from outreach_versions where sequence_id = '${sequenceId}'`)
  await sql(`delete from outreach_sequences where id = '${sequenceId}'`)
  const { rows } = (await one.console('/runs?definition=campaign')).body as unknown as {
    readonly rows: readonly { readonly runId: string }[]
  }
  return rows[0]?.runId ?? assert.fail('there is no campaign')
}

/** What the processes of another program leave behind that does not come back: a run, a schedule, runs in queues. */
async function makeForgotten({ store: on, sql, now }: Cluster) {
  const forgotten = defineRun('forgotten', (run) => run.sleep('rest', 1 * MINUTES))
  const call = defineRun('call', (run) =>
    run.step('ring', () => {
      throw new Error('the line went dead')
    }),
  )
  const nightly = schedule('nightly', { run: forgotten, input: () => null, cron: '*/5 * * * *' })
  const mails = defineQueue('mails')
  const calls = defineQueue('calls', { perKey: 1 })
  await using engine = await createEngine({
    ledger: quietLedger(on),
    runs: [forgotten, call],
    schedules: [nightly],
    queues: [mails, calls],
  })
  await engine.start(forgotten, { runId: 'stuck-1', input: null })
  await until('it sleeps', async () => (await engine.get('stuck-1')).state === 'sleeping')
  await engine.queues.pause('mails')
  await engine.enqueue(forgotten, { queue: mails, runId: 'mail-1', input: null })
  await engine.enqueue(call, { queue: calls, key: 'acme', runId: 'call-1', input: null })
  await until('its outcome is unknown', async () => (await engine.get('call-1')).state === 'unknown')
  await engine.enqueue(call, { queue: calls, key: 'acme', runId: 'call-2', input: null })
  const blocked = async () => (await engine.queues.list()).find(({ name }) => name === 'calls')?.blocked
  await until('its key has no place', blocked, (count) => count === 1)
  await engine.start(forgotten, { runId: 'parked-1', input: null })
  await until('it sleeps', async () => (await engine.get('parked-1')).state === 'sleeping')
  await engine.stop()
  // As the last of several workers leaves it that died while they drove it, before it recorded anything.
  await sql(
    `update onceonly_runs set worker = 'gone', state = 'running', due_at = null, taken_at = ${await now()} + 1000,
      takeovers = ${limits.runTakeovers - 1} where id = 'parked-1'`,
  )
  return {
    parkedRun: 'parked-1',
    stuckRun: 'stuck-1',
    lateSchedule: 'nightly',
    pausedQueue: 'mails',
    blockedQueue: 'calls',
  }
}

async function makeMessages(one: TestServer, two: TestServer, mail: MailServer) {
  const send = async (to: string, message: string, key?: string) =>
    await one.send({ recipientEmail: `${to}@example.com`, message }, key === undefined ? {} : { key })
  const idOf = async (to: string, status: string) => {
    const { body, text } = await send(to, `For ${to}`)
    assert.equal(body.status, status, text)
    return body.message?._id ?? ''
  }
  const held = { recipientEmail: 'held@example.com', message: 'Wait for it' }
  const first = one.send(held, { key: 'held-1' })
  await until('the provider holds it', () => mail.sentTo('Wait for it').length === 1)
  const early = two.send(held, { key: 'held-1' })
  const sameText = await idOf('same', 'sent')
  assert.equal((await send('same', 'For same')).body.duplicateOnly, true)
  const made = {
    lostMail: await idOf('lost', 'unknown'),
    refusedMail: await idOf('refused', 'failed'),
    laterMail: await idOf('later', 'queued'),
    sameText,
    retriedEarly: 'held-1',
  }
  const refused = await early
  assert.equal(refused.body.type, '/problems/request-in-progress', refused.text)
  mail.letGo()
  assert.equal((await first).status, 201)
  return made
}

/** More than twenty in five minutes by one caller fire the rule. */
const REUSES = 21

async function makeCommands(one: TestServer) {
  const escalate = (caseId: string, targetQueue: string, key: string) =>
    one.post('/case-escalations', { caseId, targetQueue }, { key })
  assert.equal((await escalate('CASE-100', 'LEGAL_REVIEW', 'taken-1')).status, 201)
  assert.equal((await escalate('CASE-100', 'LEGAL_REVIEW', 'taken-2')).status, 409)
  for (let n = 0; n < REUSES; n++) assert.equal((await escalate('CASE-101', 'BILLING', 'taken-1')).status, 409)
  return { takenValue: 'taken-2', reusedKey: 'taken-1' }
}

async function makeRuns(one: TestServer) {
  const begin = async (to: string, state: string) => {
    const lead = await makeLead(one, { recipientEmail: `${to}@example.com` })
    const sequence = await store(one, `To ${to}`, [{ id: 'mail', type: 'email', template: 'Step for {{lead.email}}' }])
    const runId = await start(one, sequence, lead)
    await untilState(one, runId, state)
    return runId
  }
  return { lostStep: await begin('lost', 'unknown'), failedRun: await begin('refused', 'failed') }
}

async function cutRegion(one: TestServer): Promise<string> {
  const url = (region: string) => `${one.url.replace('http', 'ws')}/chat/socket?region=${region}`
  const enter = async (region: string) => {
    const seen: unknown[] = []
    const client = await createStreamClient({
      room: 'cut-room',
      regions: [region],
      transport: createWebSocketTransport({ url, token: () => one.apiKey }),
      mode: 'at-least-once',
      storage: createMemoryStorage(),
      from: 'start',
      receiver: { message: (entry) => void seen.push(entry) },
    })
    return { client, seen }
  }
  const [ann, bob] = [await enter('frankfurt'), await enter('tokyo')]
  await ann.client.send({ text: 'Can you hear me?' })
  await until('both regions have it', () => bob.seen.length === 1)
  const headers = { authorization: `Bearer ${one.apiKey}`, 'content-type': 'application/json' }
  const link = { method: 'PUT', headers, body: '{"state":"cut"}' }
  assert.equal((await fetch(`${one.url}/api/chat/regions/tokyo/link`, link)).status, 200)
  const { accepted } = await ann.client.send({ text: 'And now?' })
  await accepted
  await Promise.all([ann.client.stop(), bob.client.stop()])
  return 'cut-room'
}

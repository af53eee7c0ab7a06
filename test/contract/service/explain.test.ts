import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { type Commands, startCommands } from '../../support/admin/cli/commands.ts'
import { type Cluster, openCluster, type TestServer } from '../../support/service/cluster.ts'

interface Explained {
  readonly record: { readonly calls: number; readonly failure: { readonly code?: string } | null }
  readonly answers: readonly { readonly topic: string; readonly answer: string; readonly alarming: boolean }[]
  readonly guard: {
    readonly hash: string
    readonly guarded: boolean
    readonly original: string
    blocked: number
  } | null
}

let cluster: Cluster
let one: TestServer
let commands: Commands
before(async () => {
  cluster = await openCluster('sqlite')
  one = cluster.servers[0] as TestServer
  commands = startCommands(process.cwd(), { ...process.env, ONCEONLY_STORE: cluster.address })
})
after(async () => {
  await commands[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
})

const explain = async (key: string) => JSON.parse((await commands.run('explain', key, '--json')).stdout) as Explained[]

test('explain shows what the guard decided on a message, also after its window, and the console finds it', async () => {
  const body = { recipientPhone: '+4915100', message: 'Hello again' }
  const original = (await one.send(body)).body.message?._id ?? ''
  for (let n = 0; n < 3; n++) assert.equal((await one.send(body)).body.message?._id, original)
  const [explained] = await until(
    'the duplicates are written down',
    () => explain(original),
    ([found]) => found?.guard?.blocked === 3,
  )
  assert.deepEqual(
    [explained?.guard?.guarded, explained?.guard?.original, explained?.record.calls],
    [true, original, 1],
  )
  assert.match((await commands.run('explain', original)).stdout, /What the guard decided[\s\S]*blocked {3}3 duplicates/)

  await cluster.advance(16 * 60_000)
  const second = (await one.send(body)).body.message?._id ?? ''
  assert.notEqual(second, original, 'the window is over')
  const [later] = await explain(second)
  assert.deepEqual(
    [later?.guard?.hash, later?.guard?.original, later?.guard?.blocked],
    [explained?.guard?.hash, second, 0],
  )
  assert.equal((await explain(original))[0]?.guard?.blocked, 3, 'the blocked duplicates are still counted')
  const found = await one.console(`/search?key=${original}`)
  const [row] = (found.body as unknown as { rows: { id: string; identity: { key: string } }[] }).rows
  assert.equal(row?.identity.key, original, found.text)
  const page = await one.console(`/records/${row?.id}`)
  assert.equal((page.body as unknown as Explained).guard?.blocked, 3)
})

test('explain names the original of a duplicate that had a key of its own', async () => {
  const body = { recipientPhone: '+4915101', message: 'Keyed' }
  const original = (await one.send(body)).body.message?._id ?? ''
  assert.equal((await one.send(body, { key: 'own-key-1' })).body.duplicateOnly, true)
  const [explained] = await explain('own-key-1')
  assert.deepEqual([explained?.guard?.original, explained?.record.calls], [original, 0])
})

test('explain says of a refused escalation that the value was taken', async () => {
  await one.admin('PUT', '/cases/CASE-1', { workspaceId: 'demo', escalatableTo: ['LEGAL_REVIEW'] })
  const body = { caseId: 'CASE-1', targetQueue: 'LEGAL_REVIEW', reason: 'asked twice' }
  const first = await one.post('/case-escalations', body, { key: 'esc-1' })
  assert.equal(first.status, 201, first.text)
  const second = await one.post('/case-escalations', body, { key: 'esc-2' })
  assert.equal(second.status, 409, second.text)
  const [explained] = await explain('esc-2')
  assert.equal(explained?.record.failure?.code, 'already-escalated')
  const uniqueness = explained?.answers.find(({ topic }) => topic === 'uniqueness')
  assert.equal(uniqueness?.alarming, true)
  assert.match(uniqueness?.answer ?? '', new RegExp(`${String(first.body['escalationId'])}.*already-escalated`))
})

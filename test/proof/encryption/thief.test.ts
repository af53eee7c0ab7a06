import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Redis } from 'ioredis'
import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import { Client } from 'pg'
import { until } from '../../../src/testing/until.ts'
import { SERVER_VARIABLES } from '../../../tools/servers/index.ts'
import { startGateway, temporaryFolder } from '../../support/gateway/process.ts'
import { openCounting, things } from '../../support/gateway/world.ts'
import { startOwn } from '../../support/own-server.ts'
import { type Answer, makeWorkspace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { ended, upload } from '../../support/service/imports/imports.ts'
import { makeLead, start, store as storeSequence, untilState } from '../../support/service/outreach/outreach.ts'

const keys = { ONCEONLY_ENCRYPTION_KEYS: `k1=${randomBytes(32).toString('base64')}` }

/** What people put in, by where it goes. No two share a word, so that a finding names its way. */
const secrets = {
  messageBody: 'words-of-a-message',
  messageSubject: 'line-above-a-message',
  phone: '5557771234',
  email: 'victim-of-theft',
  key: 'key-that-tells-something',
  attachment: 'attached-page-of-a-will',
  attachmentName: 'last-will-of-the-victim',
  escalationReason: 'reason-why-it-escalates',
  importTitle: 'title-of-a-patient-study',
  importName: 'name-of-a-private-search',
  template: 'template-of-a-sequence',
  sequenceName: 'name-of-a-sequence-of-ours',
  chat: 'said-in-a-room',
  chatPerson: 'person-in-a-room',
  amount: '918273645',
  gatewayKey: 'gateway-key-that-tells',
  upstream: 'answer-of-the-upstream',
} as const

/** As it is, in base64 wherever it begins, and in hex. */
function formsOf(secret: string): readonly string[] {
  const shifted = [0, 1, 2].map((shift) => {
    const text = Buffer.from(' '.repeat(shift) + secret).toString('base64')
    // The letters at both ends also depend on what stands beside.
    return text.slice(shift === 0 ? 0 : 4, -4)
  })
  return [secret, ...shifted, Buffer.from(secret).toString('hex')]
}

function filesIn(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? filesIn(path) : [path]
  })
}

/** Which secrets are found, and where. */
function foundIn(bytes: Buffer, where: string): string[] {
  return Object.entries(secrets).flatMap(([name, secret]) =>
    formsOf(secret).some((form) => bytes.includes(form)) ? [`${name} in ${where}`] : [],
  )
}

function foundInFolder(folder: string): string[] {
  const files = filesIn(folder)
  assert.ok(files.length > 0, `${folder} has files`)
  return files.flatMap((file) => foundIn(readFileSync(file), file.slice(folder.length + 1)))
}

const ok = (answer: Answer) => assert.ok(answer.status < 300, answer.text)

/** Something of everything that a server stores, in all five systems. */
async function work(server: TestServer): Promise<void> {
  const apiKey = await makeWorkspace(server, 'bank')
  const to = { recipientPhone: `+1${secrets.phone}`, recipientEmail: `${secrets.email}@example.com` }
  const attachments = [
    {
      filename: `${secrets.attachmentName}.txt`,
      contentType: 'text/plain',
      base64: Buffer.from(secrets.attachment).toString('base64'),
    },
  ]
  const message = { message: secrets.messageBody, subject: secrets.messageSubject, ...to }
  ok(await server.send({ ...message, channel: 'local', attachments }, { key: `${secrets.key}-1` }))
  await server.send({ ...message, message: `${secrets.messageBody} again`, channel: 'local' })
  await server.send({ ...message, message: `${secrets.messageBody} again`, channel: 'local' })
  const escalation = { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason: secrets.escalationReason }
  ok(await server.post('/case-escalations', escalation, { key: `${secrets.key}-2` }))
  // What is refused is stored, too.
  assert.equal((await server.post('/case-escalations', escalation, { key: `${secrets.key}-3` })).status, 409)
  const wanted = { projectId: 'p-1', searchName: secrets.importName, files: ['a.ris'] }
  const searchId = String((await server.post('/api/imports', wanted, { key: `${secrets.key}-4` })).body['searchId'])
  ok(await upload(server, { searchId }, 'a.ris', `TY  - JOUR\nTI  - ${secrets.importTitle}\nER  - \n`))
  assert.equal((await ended(server, searchId)).state, 'Completed')
  const lead = await makeLead(server, to)
  const sequence = await storeSequence(server, secrets.sequenceName, [
    { id: 'hello', type: 'email', subject: secrets.messageSubject, template: `${secrets.template} {{lead.email}}` },
  ])
  await untilState(server, await start(server, sequence, lead), 'succeeded')
  ok(await server.send({ ...message, channel: 'local' }, { key: `${secrets.key}-5`, apiKey }))
  await chat(server, apiKey)
  const { text } = await server.console(`/records?key=${secrets.key}-3`)
  const id = (JSON.parse(text) as { rows: { id: string }[] }).rows[0]?.id
  ok(await server.asOperator('POST', '/api/console/actions', { action: 'forget', id }))
}

async function chat(server: TestServer, apiKey: string): Promise<void> {
  const seen: unknown[] = []
  const client = await createStreamClient({
    room: 'thief',
    regions: ['tokyo'],
    transport: createWebSocketTransport({
      url: (region) => `${server.url.replace('http', 'ws')}/chat/socket?region=${region}`,
      token: () => apiKey,
    }),
    mode: 'at-least-once',
    from: 'start',
    receiver: { message: (entry) => void seen.push(entry) },
  })
  await client.send({ by: secrets.chatPerson, text: secrets.chat })
  await until('it comes back', () => seen.length === 1)
  await client.stop()
}

/** The log reads by the same rule: no line and no error of the process has a secret. */
function foundInLines(server: TestServer): string[] {
  return foundIn(Buffer.from([...server.lines, ...server.errors].join('\n')), 'the log')
}

test('a stolen folder of SQLite, with what a crash leaves beside it, and a log show no secret', async () => {
  await using cluster = await openCluster('sqlite', { env: { ...keys, ONCEONLY_LOG_LEVEL: 'debug' } })
  const [server] = cluster.servers as [TestServer]
  await work(server)
  const folder = join(cluster.address, '..')
  const running = foundInFolder(folder)
  await server.kill()
  assert.deepEqual([...running, ...foundInFolder(folder), ...foundInLines(server)], [])
})

test('the files of PostgreSQL, its log of changes included, and a dump of Redis show no secret', async () => {
  await using postgres = await startOwn('postgres')
  await using redis = await startOwn('redis')
  const url = postgres.env[SERVER_VARIABLES.postgres] ?? ''
  const claims = redis.env[SERVER_VARIABLES.redis] ?? ''
  const uploads = await mkdtemp(join(tmpdir(), 'onceonly-thief-'))
  after(() => rm(uploads, { recursive: true, force: true }))
  await using cluster = await openCluster('sqlite', {
    env: { ...keys, ONCEONLY_STORE: url, ONCEONLY_CLAIMS: claims, ONCEONLY_UPLOADS: uploads },
  })
  const [server] = cluster.servers as [TestServer]
  await work(server)
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('checkpoint')
  const { rows } = await client.query<{ folder: string }>(`select current_setting('data_directory') as folder`)
  await client.end()
  const memory = new Redis(claims)
  await memory.save()
  const [, dir = ''] = (await memory.config('GET', 'dir')) as string[]
  memory.disconnect()
  const found = [rows[0]?.folder ?? '', uploads, dir].flatMap(foundInFolder)
  assert.deepEqual([...found, ...foundInLines(server)], [])
})

test('the store of a gateway shows no key, amount or answer', async (context) => {
  const folder = await temporaryFolder(context)
  const upstream = await openCounting(context, (_request, response) =>
    response.writeHead(201, { 'content-type': 'text/plain' }).end(secrets.upstream),
  )
  const store = join(folder, 'gateway.db')
  const before = process.env['ONCEONLY_ENCRYPTION_KEYS']
  process.env['ONCEONLY_ENCRYPTION_KEYS'] = keys.ONCEONLY_ENCRYPTION_KEYS
  const gateway = await startGateway(context, folder, {
    store,
    config: { upstream: upstream.url, routes: [{ ...things, path: '/pay', operation: 'pay' }] },
  }).finally(() => {
    if (before === undefined) delete process.env['ONCEONLY_ENCRYPTION_KEYS']
    else process.env['ONCEONLY_ENCRYPTION_KEYS'] = before
  })
  const pay = () => gateway.ask({ path: '/pay', key: secrets.gatewayKey, body: `{"amount":${secrets.amount}}` })
  assert.equal((await pay()).status, 201)
  assert.equal((await pay()).status, 201)
  assert.equal(upstream.seen.length, 1)
  await gateway.kill()
  const found = filesIn(folder)
    .filter((file) => file.includes('gateway.db'))
    .flatMap((file) => foundIn(readFileSync(file), file))
  assert.deepEqual([...found, ...foundIn(Buffer.from(gateway.lines.join('\n')), 'its log')], [])
})

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import { until } from '../../../src/testing/until.ts'
import { type Answer, makeWorkspace, type TestServer } from './cluster.ts'
import { ended, upload } from './imports/imports.ts'
import { makeLead, start, store as storeSequence, untilState } from './outreach/outreach.ts'

/** What people put in, by where it goes. No two share a word, so that a finding names its way. */
export const secrets = {
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

export function filesIn(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? filesIn(path) : [path]
  })
}

/** Which secrets are found, and where. */
export function foundIn(bytes: Buffer, where: string): string[] {
  return Object.entries(secrets).flatMap(([name, secret]) =>
    formsOf(secret).some((form) => bytes.includes(form)) ? [`${name} in ${where}`] : [],
  )
}

export function foundInFolder(folder: string): string[] {
  const files = filesIn(folder)
  assert.ok(files.length > 0, `${folder} has files`)
  return files.flatMap((file) => foundIn(readFileSync(file), file.slice(folder.length + 1)))
}

const ok = (answer: Answer) => assert.ok(answer.status < 300, answer.text)

/** Something of everything that a server stores, in all five systems. */
export async function work(server: TestServer): Promise<void> {
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

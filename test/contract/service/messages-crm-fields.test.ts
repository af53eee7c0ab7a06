import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { BadSetting, readConfig } from '../../../service/config.ts'
import { callProvider } from '../../../service/messages/channels/http.ts'
import { demoKey, openedService } from '../../support/service/openapi/opened.ts'

const { service, ...opened } = await openedService()
after(() => opened[Symbol.asyncDispose]())

async function post(path: string, body: unknown) {
  const headers = { authorization: `Bearer ${demoKey}`, 'content-type': 'application/json' }
  const answer = await fetch(`${service.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: answer.status, body: (await answer.json()) as Readonly<Record<string, unknown>> }
}

const send = (body: object) => post('/api/messages', { message: 'From a CRM', ...body })
const fieldsOf = ({ errors }: Readonly<Record<string, unknown>>) =>
  ((errors ?? []) as { field: string }[]).map(({ field }) => field)

/** CRMs send every field that they have, filled in or not, and ids as they keep them. */
test('an empty recipient or id of a CRM is none', async () => {
  const empty = { recipientEmail: '', leadId: '', ghlContactId: '', ghlLocationId: '', hsContactId: '', hsPortalId: '' }
  const sent = await send({ recipientPhone: '+4915112345601', ...empty })
  assert.equal(sent.status, 201, JSON.stringify(sent.body))
  const { recipientEmail } = sent.body['message'] as { recipientEmail: unknown }
  assert.deepEqual([recipientEmail, sent.body['hsPortalId'], sent.body['ghlContactId']], [null, null, null])
  const same = await send({ recipientPhone: '+4915112345601' })
  assert.equal(same.body['duplicateOnly'], true, 'it is the same message as without the fields')
  const unaddressed = await send({ recipientPhone: '', recipientEmail: '' })
  assert.deepEqual([unaddressed.status, fieldsOf(unaddressed.body)], [400, ['recipientPhone', 'recipientEmail']])
})

test('an id of a CRM may be a number, as long as it is exact', async () => {
  const sent = await send({ recipientPhone: '+4915112345602', hsPortalId: 12_345_678, hsContactId: 901 })
  assert.equal(sent.status, 201, JSON.stringify(sent.body))
  assert.deepEqual([sent.body['hsPortalId'], sent.body['hsContactId']], ['12345678', '901'])
  for (const hsPortalId of [1.5, 2 ** 53, true, {}, '\u0000', ' ']) {
    const refused = await send({ recipientPhone: '+4915112345603', hsPortalId })
    assert.deepEqual([refused.status, fieldsOf(refused.body)], [400, ['hsPortalId']], String(hsPortalId))
  }
})

test('a port that no request can be sent to is refused where it is configured', async () => {
  for (const variable of ['ONCEONLY_MESSAGE_WEBHOOK_URL', 'ONCEONLY_TWILIO_URL']) {
    const read = (url: string) => readConfig({ [variable]: url })
    assert.throws(
      () => read('http://127.0.0.1:6667/hook'),
      (error) => error instanceof BadSetting && /6667/.test(error.message),
    )
    assert.throws(() => read('https://provider.example:25/'), BadSetting)
    read('https://provider.example/')
    read('http://provider.example:8025/')
  }
  const steps = (url: string) => ({ name: 'Ports', steps: [{ id: 'a', type: 'webhook', template: 'Hi', url }] })
  const refused = await post('/api/sequences', steps('https://provider.example:6667/'))
  assert.equal(refused.status, 400, JSON.stringify(refused.body))
  assert.match(JSON.stringify(refused.body['errors']), /6667/)
})

test('a call that never left is not an unknown one', async () => {
  for (const url of ['http://127.0.0.1:6667/', 'http://', 'ftp://127.0.0.1/', 'http://nowhere.invalid/']) {
    const { kind } = await callProvider(url, { body: 'x' }, () => null, 'own')
    assert.equal(kind, 'not_now', url)
  }
})

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import {
  type Cluster,
  makeWorkspace,
  onEveryPlace,
  openCluster,
  type TestServer,
} from '../../support/service/cluster.ts'

const minutes = 60_000

onEveryPlace('messages', (place) => {
  let cluster: Cluster
  let server: TestServer
  before(async () => {
    cluster = await openCluster(place, { processes: 2 })
    server = cluster.servers[0] as TestServer
  })
  after(() => cluster[Symbol.asyncDispose]())

  test('a new lead is 201, a known one 200, and both answers carry the ids of the CRM (G7, G14)', async () => {
    const crm = { ghlContactId: 'g-1', ghlLocationId: 'g-2', hsContactId: 'h-1', hsPortalId: 'h-2' }
    const first = await server.send({ recipientPhone: '0049 (151) 1000-1', message: 'Hello', ...crm })
    assert.equal(first.status, 201)
    const { message, leadId } = first.body
    assert.ok(message && leadId)
    assert.deepEqual(first.body, { success: true, status: 'sent', message, leadId, ...crm })
    assert.deepEqual(
      { ...message, createdAt: '', sentAt: '' },
      {
        _id: message._id,
        workspaceId: 'demo',
        leadId,
        conversationId: message.conversationId,
        recipientPhone: '+4915110001',
        recipientEmail: null,
        message: 'Hello',
        channel: 'local',
        status: 'sent',
        providerMessageId: `local:${message._id}`,
        error: null,
        createdAt: '',
        sentAt: '',
      },
    )
    assert.match(`${message.createdAt} ${message.sentAt}`, /^\d{4}-\S+Z \d{4}-\S+Z$/)

    const second = await server.send({ recipientPhone: '+4915110001', message: 'Hello again', hsPortalId: 'h-9' })
    assert.equal(second.status, 200)
    assert.equal(second.body.leadId, leadId)
    assert.equal(second.body.message?.conversationId, message.conversationId)
    assert.deepEqual([second.body.ghlContactId, second.body.hsPortalId], ['g-1', 'h-9'])
  })

  test('a message, a conversation and the lists can be read, in their own workspace only', async () => {
    const apiKey = await makeWorkspace(server, 'readers')
    const sent = []
    for (const text of ['one', 'two', 'three']) {
      sent.push((await server.send({ recipientPhone: '+4930111', message: text }, { apiKey })).body.message)
    }
    await server.send({ recipientEmail: 'other@example.com', message: 'else' }, { apiKey })
    const [first, second, third] = sent
    assert.ok(first && second && third)
    assert.deepEqual((await server.get(`/api/messages/${second._id}`, { apiKey })).body, second)
    assert.equal((await server.get(`/api/messages/${second._id}`)).status, 404)
    assert.equal((await server.get('/api/messages/%00')).status, 404)
    const conversation = await server.get(`/api/conversations/${first.conversationId}`, { apiKey })
    assert.deepEqual([conversation.body['_id'], conversation.body['phone']], [first.conversationId, '+4930111'])
    assert.equal((await server.get(`/api/conversations/${first.conversationId}`)).status, 404)

    const page = await server.get(`/api/messages?leadId=${first.leadId}&limit=2`, { apiKey })
    assert.deepEqual(page.body['messages'], [third, second])
    const rest = await server.get(
      `/api/messages?conversationId=${first.conversationId}&limit=2&cursor=${page.body['cursor']}`,
      { apiKey },
    )
    assert.deepEqual(rest.body, { messages: [first], cursor: null })
    const leads = (await server.get('/api/leads', { apiKey })).body['leads'] as { phone: string; email: string }[]
    assert.deepEqual(
      leads.map(({ phone, email }) => phone ?? email),
      ['other@example.com', '+4930111'],
    )
  })

  for (const [query, field] of [
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=x', 'limit'],
    ['cursor=%2A', 'cursor'],
    ['leadId=%00', 'leadId'],
  ] as const) {
    test(`a list with ${query} is refused`, async () => {
      const answer = await server.get(`/api/messages?${query}`)
      assert.equal(answer.status, 400)
      assert.deepEqual(
        answer.body.errors?.map((error) => error.field),
        [field],
      )
    })
  }

  test('one lead and one conversation for a phone, however many ask at once (G14)', async () => {
    const to = (at: number) => ({ recipientPhone: '+4940222', message: `Burst ${at}` })
    const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => server.send(to(at))))
    assert.equal(answers.filter(({ status }) => status === 201).length, 1)
    assert.equal(answers.filter(({ status }) => status === 200).length, 19)
    assert.equal(new Set(answers.map(({ body }) => body.leadId)).size, 1)
    assert.equal(new Set(answers.map(({ body }) => body.message?.conversationId)).size, 1)
  })

  test('phones and addresses in every combination at once: no duplicate lead, and no refusal', async () => {
    const apiKey = await makeWorkspace(server, 'mixed')
    const combinations = [null, 0, 1, 2].flatMap((phone) => [null, 0, 1, 2].map((email) => ({ phone, email }))).slice(1)
    const answers = await Promise.all(
      combinations.flatMap(({ phone, email }, at) =>
        cluster.servers.map((each, process) =>
          each.send(
            {
              recipientPhone: phone === null ? null : `+4940300${phone}`,
              recipientEmail: email === null ? null : `mixed${email}@example.com`,
              message: `Mixed ${at} ${process}`,
            },
            { apiKey },
          ),
        ),
      ),
    )
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200, 201]))
    const leads = (await server.get('/api/leads', { apiKey })).body['leads'] as { phone?: string; email?: string }[]
    assert.equal(answers.filter(({ status }) => status === 201).length, leads.length)
    for (const field of ['phone', 'email'] as const) {
      const given = leads.map((lead) => lead[field]).filter((value) => value !== null)
      assert.deepEqual(new Set(given).size, 3)
      assert.equal(given.length, 3)
    }
  })

  test('an e-mail address is one lead in any spelling, with one conversation of its own', async () => {
    const first = await server.send({ recipientEmail: ' Ann@Example.COM ', message: 'Hi Ann' })
    const again = await server.send({ recipientEmail: 'ann@example.com', message: 'Hi again' })
    assert.deepEqual([first.status, again.status], [201, 200])
    assert.equal(first.body.message?.recipientEmail, 'ann@example.com')
    assert.equal(again.body.leadId, first.body.leadId)
    assert.equal(again.body.message?.conversationId, first.body.message?.conversationId)
  })

  test('the phone of one lead with the address of another: the phone decides, nothing is merged', async () => {
    const byPhone = await server.send({ recipientPhone: '+4950333', message: 'to the phone' })
    const byEmail = await server.send({ recipientEmail: 'bob@example.com', message: 'to the address' })
    const both = await server.send({ recipientPhone: '+4950333', recipientEmail: 'bob@example.com', message: 'both' })
    assert.equal(both.status, 200)
    assert.equal(both.body.leadId, byPhone.body.leadId)
    const mail = await server.send({ recipientEmail: 'bob@example.com', message: 'to the address, later' })
    assert.equal(mail.body.leadId, byEmail.body.leadId)
  })

  test('a lead takes what it did not have: a new phone with the address of a lead without one', async () => {
    const byEmail = await server.send({ recipientEmail: 'eve@example.com', message: 'one' })
    const both = await server.send({ recipientPhone: '+4960444', recipientEmail: 'eve@example.com', message: 'two' })
    assert.deepEqual([both.status, both.body.leadId], [200, byEmail.body.leadId])
    const byPhone = await server.send({ recipientPhone: '+4960444', message: 'three' })
    assert.equal(byPhone.body.leadId, byEmail.body.leadId)
    const stranger = await server.send({
      recipientPhone: '+4960445',
      recipientEmail: 'eve@example.com',
      message: 'four',
    })
    assert.equal(stranger.status, 201)
    assert.notEqual(stranger.body.leadId, byEmail.body.leadId)
  })

  test('a lead can be named: alone it supplies the recipients, contradicted it is refused', async () => {
    const made = await server.send({ recipientPhone: '+4970555', recipientEmail: 'dan@example.com', message: 'one' })
    const { leadId } = made.body
    const alone = await server.send({ leadId, message: 'two' })
    assert.equal(alone.status, 200)
    assert.deepEqual(
      [alone.body.message?.recipientPhone, alone.body.message?.recipientEmail],
      ['+4970555', 'dan@example.com'],
    )
    const wrong = { leadId, recipientPhone: '+4970556', recipientEmail: 'dora@example.com', message: 'three' }
    const refused = await server.send(wrong)
    assert.equal(refused.status, 409)
    assert.equal(refused.body.type, '/problems/lead-contradicted')
    assert.deepEqual(
      refused.body.errors?.map(({ field }) => field),
      ['recipientPhone', 'recipientEmail'],
    )
    const unknown = await server.send({ ...wrong, leadId: 'lead_unknown' })
    assert.equal(unknown.status, 404)
    assert.deepEqual(
      unknown.body.errors?.map(({ field }) => field),
      ['leadId'],
    )
  })

  test('a send for another workspace, without a key, or without the right is refused', async () => {
    const apiKey = await makeWorkspace(server, 'strangers')
    const made = await server.send({ recipientPhone: '+4980666', message: 'mine' })
    const theirs = await server.send({ leadId: made.body.leadId, message: 'yours' }, { apiKey })
    assert.equal(theirs.status, 404)
    assert.equal(
      (await server.send({ recipientPhone: '+4980666', message: 'x' }, { apiKey: 'no-such-key' })).status,
      401,
    )
    await server.admin('PUT', '/workspaces/strangers/callers/api/rights', { rights: ['escalations'] })
    assert.equal((await server.send({ recipientPhone: '+4980666', message: 'x' }, { apiKey })).status, 403)
  })

  describe('allowed and blocked (G5)', () => {
    test('one template to a hundred leads is a hundred sends', async () => {
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, at) =>
          until(
            'the server has room for it',
            () => server.send({ recipientPhone: `+4990${1000 + at}`, message: 'Sale!' }),
            ({ status }) => status !== 503,
          ),
        ),
      )
      assert.equal(answers.filter(({ status }) => status === 201).length, 100)
      assert.equal(new Set(answers.map(({ body }) => body.message?._id)).size, 100)
    })

    for (const [name, first, second] of [
      ['one more space', 'See you at 10', 'See you at 10 '],
      ['another case', 'Hello', 'hello'],
      ['another form of the same letter', 'caf\u00e9', 'cafe\u0301'],
      ['an emoji of another colour', '👍🏻', '👍🏽'],
    ] as const) {
      test(`${name} is another message`, async () => {
        const answers = [first, second].map((message) => server.send({ recipientPhone: '+4991001', message }))
        const ids = (await Promise.all(answers)).map(({ body }) => [body.duplicateOnly, body.message?.message])
        assert.deepEqual(ids, [
          [undefined, first],
          [undefined, second],
        ])
      })
    }

    test('another workspace is another message', async () => {
      const apiKey = await makeWorkspace(server, 'neighbours')
      const body = { recipientPhone: '+4992001', message: 'Same text' }
      const answers = [await server.send(body), await server.send(body, { apiKey })]
      assert.deepEqual(
        answers.map(({ status }) => status),
        [201, 201],
      )
    })

    test('another channel or another attachment is the same message', async () => {
      const body = { recipientPhone: '+4993001', message: 'With a picture' }
      const first = await server.send(body)
      const attachments = [{ filename: 'a.png', contentType: 'image/png', url: 'https://example.com/a.png' }]
      const second = await server.send({ ...body, attachments, channel: 'local' })
      assert.equal(second.body.duplicateOnly, true)
      assert.equal(second.body.message?._id, first.body.message?._id)
    })

    test('two leads with one phone are one human', async () => {
      const first = await server.send({ recipientPhone: '+4994001', message: 'intro' })
      const mail = await server.send({ recipientEmail: 'shared@example.com', message: 'intro' })
      assert.notEqual(mail.body.leadId, first.body.leadId)
      const text = { recipientPhone: '+4994001', message: 'to a shared phone' }
      const original = await server.send({ ...text, leadId: first.body.leadId })
      const twin = await server.send({ ...text, leadId: mail.body.leadId })
      assert.equal(twin.body.duplicateOnly, true)
      assert.equal(twin.body.message?._id, original.body.message?._id)
      assert.equal(twin.body.leadId, first.body.leadId)
    })

    test('a phone, or an address, of another lead than the named one makes it a message to that one', async () => {
      const phone = await server.send({ recipientPhone: '+4994002', message: 'intro' })
      const mail = await server.send({ recipientEmail: 'named@example.com', message: 'intro' })
      const toPhone = await server.send({ leadId: mail.body.leadId, recipientPhone: '+4994002', message: 'by phone' })
      assert.equal(toPhone.status, 200)
      assert.equal(toPhone.body.leadId, phone.body.leadId)
      assert.equal(toPhone.body.message?.conversationId, phone.body.message?.conversationId)
      const toMail = { leadId: phone.body.leadId, recipientEmail: 'named@example.com', message: 'by mail' }
      assert.equal((await server.send(toMail)).body.leadId, mail.body.leadId)
      const another = await server.send({
        leadId: mail.body.leadId,
        recipientPhone: '+4994003',
        message: 'a new phone',
      })
      assert.equal(another.body.leadId, mail.body.leadId, 'which no lead has, so that it is now its own')
    })

    test('after the window it is a new message', async () => {
      const body = { recipientPhone: '+4995001', message: 'Every quarter of an hour' }
      const first = await server.send(body)
      await cluster.advance(15 * minutes)
      const second = await server.send(body)
      assert.deepEqual([second.status, second.body.duplicateOnly], [200, undefined])
      assert.notEqual(second.body.message?._id, first.body.message?._id)
    })
  })
})

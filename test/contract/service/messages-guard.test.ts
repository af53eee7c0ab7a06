import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createLedger, type Ledger, type SqlTx } from 'onceonly'
import { createGuard, type Guard } from 'onceonly/guard'
import { until } from '../../../src/testing/until.ts'
import { breakTable } from '../../support/service/break.ts'
import { type Cluster, onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { type MailServer, startMail } from '../../support/service/messages/mail.ts'
import { sendPairs, sendPatiently } from './messages/pairs.ts'

const seconds = 1_000
const minutes = 60 * seconds
const hours = 60 * minutes

interface Content {
  readonly phone: string | null
  readonly email: string | null
  readonly body: string
}

onEveryPlace('the guard, with two processes', (place) => {
  let mail: MailServer
  let cluster: Cluster
  let one: TestServer
  let two: TestServer
  /** The test holds locks itself, as one more process would. */
  let ledger: Ledger<SqlTx>
  let guard: Guard<Content>
  before(async () => {
    mail = await startMail()
    cluster = await openCluster(place, { processes: 2, env: { ONCEONLY_SMTP_URL: mail.url } })
    ;[one, two] = cluster.servers as [TestServer, TestServer]
    ledger = createLedger({ store: cluster.store, background: false })
    guard = createGuard<Content>({
      ledger,
      name: 'messages',
      identity: ({ phone, email, body }) => ['demo', phone, email, body],
    })
  })
  after(async () => {
    await ledger.stop()
    await cluster[Symbol.asyncDispose]()
    await mail[Symbol.asyncDispose]()
  })

  const mailTo = (name: string, message: string) => ({ recipientEmail: `${name}@example.com`, message })
  const contentOf = (body: { recipientEmail: string; message: string }) => ({
    phone: null,
    email: body.recipientEmail,
    body: body.message,
  })

  /** The lock on a text, past every interface; whether a request waits for it. */
  const lockOf = (body: { recipientEmail: string; message: string }) =>
    cluster.sql<{ awaited: number }>(
      `select awaited from onceonly_records where operation = 'guard.messages' and key = '${guard.hashOf(contentOf(body))}'`,
    )

  test('twenty pairs of identical requests, 0 to 350 ms apart, are twenty mails (G1, G3)', async () => {
    await sendPairs(cluster, mail, 20)
  })

  test('twenty identical requests at once on two processes are one mail', async () => {
    const body = mailTo('crowd', 'All at once')
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => sendPatiently(at % 2 === 0 ? one : two, body)),
    )
    assert.equal(answers.filter(({ status }) => status === 201).length, 1)
    assert.equal(new Set(answers.map((answer) => answer.body.message?._id)).size, 1)
    assert.equal(mail.sentTo('All at once').length, 1)
  })

  test('within the window the original comes back, with its age; a duplicate does not extend it (G2, G7)', async () => {
    const body = mailTo('window', 'Until the window ends')
    const original = await one.send(body)
    for (const [advanceMs, ageSeconds] of [
      [2 * minutes, 120],
      [8 * minutes, 600],
      [4 * minutes, 840],
    ] as const) {
      await cluster.advance(advanceMs)
      const again = await two.send(body)
      const age = Number(/already sent to this contact (\d+)s ago/.exec(again.body.duplicateMessage ?? '')?.[1])
      assert.ok(age >= ageSeconds && age < ageSeconds + 30, String(age))
      assert.equal(again.status, 200)
      assert.deepEqual(again.body, {
        success: true,
        duplicateOnly: true,
        duplicateMessage: `Same message text already sent to this contact ${age}s ago — returning existing message instead of sending again`,
        message: original.body.message,
        leadId: original.body.leadId,
        ghlContactId: null,
        ghlLocationId: null,
        hsContactId: null,
        hsPortalId: null,
      })
    }
    assert.equal(mail.sentTo('Until the window ends').length, 1)
    await cluster.advance(1 * minutes)
    const later = await one.send(body)
    assert.deepEqual([later.status, later.body.duplicateOnly], [200, undefined])
    assert.equal(mail.sentTo('Until the window ends').length, 2)
  })

  test('a key comes first: replayed for a day; other keys and no key meet the guard (G4)', async () => {
    const body = mailTo('keyed', 'Under a key')
    const first = await one.send(body, { key: 'k-1' })
    const retry = await two.send(body, { key: 'k-1' })
    assert.deepEqual([first.status, retry.status], [201, 201])
    assert.deepEqual(
      [first.headers.get('idempotent-replayed'), retry.headers.get('idempotent-replayed')],
      [null, 'true'],
    )
    assert.equal(retry.text, first.text)

    const other = await two.send(body, { key: 'k-2' })
    assert.deepEqual([other.status, other.body.duplicateOnly], [200, true])
    const none = await one.send(body)
    assert.equal(none.body.duplicateOnly, true)
    const reused = await one.send({ ...body, message: 'Something else' }, { key: 'k-1' })
    assert.deepEqual([reused.status, reused.body.type], [409, '/problems/idempotency-key-reused'])

    await cluster.advance(14 * hours)
    const muchLater = await two.send(body, { key: 'k-1' })
    assert.deepEqual([muchLater.status, muchLater.text], [201, first.text])
    // A replay of the duplicate's response is identical, age included.
    assert.equal((await one.send(body, { key: 'k-2' })).text, other.text)
    assert.equal(mail.sentTo('Under a key').length, 1)

    await cluster.advance(10 * hours + 1 * minutes)
    const nextDay = await one.send(body, { key: 'k-1' })
    assert.deepEqual([nextDay.status, nextDay.body.duplicateOnly], [200, undefined])
    assert.equal(mail.sentTo('Under a key').length, 2)
  })

  test('an original in flight is waited for, 3 s, then refused without an answer that lasts (G4, G8, G13)', async () => {
    const body = mailTo('pending', 'Still in flight')
    const gate = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const holding = guard.send(contentOf(body), () => {
      held.resolve()
      return gate.promise
    })
    await held.promise
    const startedAt = performance.now()
    const refused = await one.send(body, { key: 'p-1' })
    // The original is held until this is answered: a request that waited for its end would wait forever.
    const tookMs = performance.now() - startedAt
    assert.ok(tookMs >= 2.8 * seconds, String(tookMs))
    assert.equal(refused.status, 200)
    assert.deepEqual(refused.body, {
      success: true,
      duplicateOnly: true,
      duplicateMessage:
        'A previous identical request is still being processed — refusing to send again. Retry once the original completes.',
      message: null,
      leadId: null,
      ghlContactId: null,
      ghlLocationId: null,
      hsContactId: null,
      hsPortalId: null,
    })
    const [event] = await loggedEvents(
      'duplicate_pending',
      [one],
      ({ lockHash }) => lockHash === guard.hashOf(contentOf(body)),
    )
    assert.deepEqual(
      [event?.['lockHash'], event?.['workspaceId'], event?.['originalId']],
      [guard.hashOf(contentOf(body)), 'demo', null],
    )
    assert.ok(Number(event?.['ageMs']) > 0)
    assert.equal(mail.sentTo('Still in flight').length, 0)

    // Its holder fails before the original exists, and gives the lock back.
    gate.reject(new Error('not accepted'))
    await assert.rejects(holding, /not accepted/)
    const sent = await two.send(body, { key: 'p-1' })
    assert.deepEqual([sent.status, sent.headers.get('idempotent-replayed')], [201, null])
    const retry = await one.send(body, { key: 'p-1' })
    assert.deepEqual([retry.text, retry.headers.get('idempotent-replayed')], [sent.text, 'true'])
  })

  // Only PostgreSQL lets a process claim while another one's insert has to wait: SQLite has one writer for both.
  if (place === 'postgres') {
    test('while one process is still accepting, the other refuses; its retry gets the original (G8)', async () => {
      const body = mailTo('slow', 'Slowly accepted')
      const gate = Promise.withResolvers<void>()
      const locked = Promise.withResolvers<void>()
      const holding = cluster.store.transactions.run(
        async ({ tx }) => {
          await tx.query('lock table messages in exclusive mode')
          locked.resolve()
          await gate.promise
        },
        { timeoutMs: 120 * seconds, lockMs: 60 * seconds, refuseTwinOf: null },
      )
      await locked.promise
      const slow = one.send(body)
      await until('the first has the lock', async () => (await lockOf(body)).length === 1)
      const refused = await two.send(body)
      assert.deepEqual([refused.status, refused.body.duplicateOnly, refused.body.message], [200, true, null])
      gate.resolve()
      await holding
      const original = await slow
      assert.equal(original.status, 201)
      const retry = await two.send(body)
      assert.deepEqual([retry.body.duplicateOnly, retry.body.message], [true, original.body.message])
      assert.equal(mail.sentTo('Slowly accepted').length, 1)
    })

    test('a message that cannot be stored is refused, not lost: 503, until the database is back (G10)', async () => {
      const body = mailTo('away', 'While it was away')
      const bringBack = await cluster.cutOff()
      const refused = await Promise.all([one.send(body), two.send(body, { key: 'away' })])
      await bringBack()
      for (const { status, headers, body: problem } of refused) {
        assert.deepEqual([status, problem.retryable], [503, true])
        assert.match(headers.get('retry-after') ?? '', /^\d+$/)
      }
      assert.equal(mail.sentTo('While it was away').length, 0)
      const sent = await two.send(body, { key: 'away' })
      assert.equal(sent.status, 201)
      assert.equal((await one.send(body)).body.message?._id, sent.body.message?._id)
    })
  }

  /** Lets a duplicate wait, then names its original, and ends only after the duplicate was answered. */
  async function pollFor(messageId: string, body: ReturnType<typeof mailTo>) {
    const held = Promise.withResolvers<void>()
    const accepted = Promise.withResolvers<void>()
    const over = Promise.withResolvers<void>()
    const holding = guard.send(contentOf(body), async (attempt) => {
      held.resolve()
      await accepted.promise
      await attempt?.attach({ type: 'message', id: messageId })
      await over.promise
    })
    await held.promise
    const asked = two.send(body)
    let answered = false
    void asked.finally(() => void (answered = true))
    await until('the duplicate waits', async () => answered || (await lockOf(body))[0]?.awaited === 1)
    accepted.resolve()
    const found = (await asked).body.message?._id ?? null
    // While its original is still being sent: it was not the end that was waited for.
    over.resolve()
    assert.ok(found === null || found === messageId, String(found))
    await holding
    return { body, found }
  }

  test('an original that appears while its duplicate waits is found at once (G8, G13)', async () => {
    const original = await one.send(mailTo('polled', 'The original'))
    const messageId = original.body.message?._id ?? ''
    // A duplicate waits for three seconds: a busy machine may need more of them until one is answered in time.
    let copies = 0
    const { body } = await until(
      'a waiting duplicate got its original',
      () => pollFor(messageId, mailTo('polled', `Its duplicate ${++copies}`)),
      ({ found }) => found !== null,
    )
    const hash = guard.hashOf(contentOf(body))
    const own = await loggedEvents('duplicate_blocked', [one, two], ({ lockHash }) => lockHash === hash)
    assert.deepEqual(
      own.map(({ mode, workspaceId, originalId }) => [mode, workspaceId, originalId]),
      [['lock_resolved_polled', 'demo', messageId]],
    )
    await one.send(body)
    const [atOnce] = await loggedEvents('duplicate_blocked', [one], ({ originalId }) => originalId === messageId)
    assert.deepEqual([atOnce?.['mode'], typeof atOnce?.['ageMs']], ['lock_resolved', 'number'])
  })

  test('a send that fails before its message exists frees the lock and the key (G9)', async () => {
    const body = mailTo('unlucky', 'The insert fails')
    const mend = await breakTable(cluster, place, 'messages', "new.body = 'The insert fails'")
    const failed = [await one.send(body), await two.send(body, { key: 'u-1' })]
    assert.deepEqual(
      failed.map(({ status, body: problem }) => [status, problem.retryable]),
      [
        [500, true],
        [500, true],
      ],
    )
    await mend()
    const sent = await two.send(body, { key: 'u-1' })
    assert.deepEqual([sent.status, sent.body.status], [201, 'sent'])
    assert.equal(mail.sentTo('The insert fails').length, 1)

    const lock = await one.admin('GET', `/guard/locks/${guard.hashOf(contentOf(body))}`)
    assert.equal(lock.status, 200)
    assert.equal(lock.body['messageId'], sent.body.message?._id)
    assert.equal(lock.body['workspaceId'], 'demo')
  })

  // On SQLite the locks are in the same file as everything else: they are never away alone.
  const alone = { skip: place === 'sqlite' ? 'no store of the locks that is away alone' : false }
  test('a lock that cannot be asked is reported, and the message goes out unguarded (G10, G13)', alone, async () => {
    const body = mailTo('open', 'Without a lock')
    const mend = await breakTable(cluster, place, 'onceonly_records', "new.operation = 'guard.messages'")
    const closed = await cluster.add({ ONCEONLY_GUARD_FAILS: 'closed' })
    const sent = [await one.send(body), await one.send(body, { key: 'o-1' })]
    const refused = await closed.send(body)
    await mend()
    assert.deepEqual(
      sent.map(({ status, body: answer }) => [status, answer.status, answer.duplicateOnly]),
      [
        [201, 'sent', undefined],
        // The database knows the first one, whatever the locks know.
        [200, undefined, true],
      ],
    )
    assert.equal(mail.sentTo('Without a lock').length, 1)
    const [event] = await loggedEvents('duplicate_guard_error', [one], () => true)
    assert.deepEqual(
      [event?.['lockHash'], event?.['workspaceId'], event?.['originalId'], event?.['ageMs']],
      [guard.hashOf(contentOf(body)), 'demo', null, null],
    )
    assert.ok(String(event?.['error']).length > 0)
    assert.equal(refused.status, 503, refused.text)
    assert.equal(refused.body.retryable, true)
    // What was recorded under the key is replayed like any other send.
    assert.equal((await two.send(body, { key: 'o-1' })).text, sent[1]?.text)
    await closed.stop()
  })

  test('without the guard only a key protects', async () => {
    const open = await cluster.add({ ONCEONLY_GUARD: 'off' })
    const body = mailTo('unguarded', 'Twice on purpose')
    const sent = [await open.send(body), await open.send(body), await open.send(body, { key: 'off-1' })]
    assert.deepEqual(
      sent.map(({ status, body: answer }) => [status, answer.duplicateOnly]),
      [
        [201, undefined],
        [200, undefined],
        [200, undefined],
      ],
    )
    assert.equal((await open.send(body, { key: 'off-1' })).text, sent[2]?.text)
    assert.equal(mail.sentTo('Twice on purpose').length, 3)
    await open.stop()
  })

  test('a failed original comes back within its window, until an operator frees the lock (G11)', async () => {
    const body = { recipientEmail: 'refused@example.com', message: 'Not delivered' }
    const failed = await one.send(body)
    assert.equal(failed.status, 201)
    assert.deepEqual(
      [failed.body.success, failed.body.status, failed.body.message?.status],
      [false, 'failed', 'failed'],
    )
    assert.match(failed.body.message?.error ?? '', /No such person/)
    const again = await two.send(body)
    assert.deepEqual([again.body.duplicateOnly, again.body.message], [true, failed.body.message])

    const hash = guard.hashOf(contentOf(body))
    assert.equal((await two.get(`/api/admin/guard/locks/${hash}`)).status, 401)
    assert.equal((await two.admin('DELETE', `/guard/locks/${hash}`)).status, 204)
    assert.equal((await two.admin('DELETE', `/guard/locks/${hash}`)).status, 404)
    assert.equal((await one.admin('GET', `/guard/locks/${hash}`)).status, 404)
    assert.equal((await one.admin('GET', '/guard/locks/nonsense')).status, 404)
    const retried = await one.send(body)
    assert.equal(retried.body.duplicateOnly, undefined)
    assert.notEqual(retried.body.message?._id, failed.body.message?._id)
  })

  test('a process that dies with a lock leaves it for its lease only, and nothing beyond the window (G12)', async () => {
    const body = mailTo('orphan', 'Its process died')
    const hash = guard.hashOf(contentOf(body))
    // A ledger that is dropped stands for a process that died: no heartbeat, no release.
    const dead = createLedger({ store: cluster.store, background: false })
    const its = createGuard<Content>({
      ledger: dead,
      name: 'messages',
      identity: (content) => ['demo', content.phone, content.email, content.body],
    })
    const begun = Promise.withResolvers<void>()
    void its.send(contentOf(body), () => {
      begun.resolve()
      return new Promise(() => {})
    })
    await begun.promise
    await dead.stop()
    const held = await one.admin('GET', `/guard/locks/${hash}`)
    assert.deepEqual([held.body['state'], held.body['messageId']], ['in_progress', null])
    assert.equal((await one.send(body)).body.message, null)
    await cluster.advance(36 * seconds)
    assert.equal((await two.send(body)).body.status, 'sent')

    await cluster.advance(16 * minutes)
    assert.equal((await one.admin('GET', `/guard/locks/${hash}`)).status, 404)
    assert.ok((await ledger.upkeep.sweep()) > 0)
    const left = await cluster.sql(
      `select 1 from onceonly_records where operation = 'guard.messages' and key = '${hash}'`,
    )
    assert.equal(left.length, 0)
  })
})

/** The ops events of some servers, as soon as there is one: a line of the log may come after the answer it is about. */
async function loggedEvents(
  name: string,
  servers: readonly TestServer[],
  is: (event: Readonly<Record<string, unknown>>) => boolean,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return until(
    `the event ${name} is logged`,
    () => servers.flatMap((server) => server.events(`message.api.${name}`)).filter(is),
    ({ length }) => length > 0,
  )
}

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { startCommands } from '../../support/admin/cli/commands.ts'
import { type Cluster, onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { secrets, work } from '../../support/service/secrets.ts'

const [k1, k2] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
const before = { ONCEONLY_ENCRYPTION_KEYS: `k1=${k1}` }
const both = { ONCEONLY_ENCRYPTION_KEYS: `k1=${k1},k2=${k2}`, ONCEONLY_ENCRYPTION_WRITE_WITH: 'k2' }
const later = { ONCEONLY_ENCRYPTION_KEYS: `k2=${k2}` }

/** Enough that a kill meets it in the middle. */
const COPIES = 6_000
const CHUNK = 1_000

/** What the server's own tables keep of every system, and what those of the library keep for it. */
const columns = [
  ['messages', 'body'],
  ['case_escalations', 'reason'],
  ['import_references', 'title'],
  ['outreach_versions', 'steps'],
  ['chat_clients', 'caller'],
  ['onceonly_runs', 'input'],
  ['onceonly_records', 'outcome'],
] as const

function rekey({ address }: Cluster) {
  const program = resolve(import.meta.dirname, '../../../src/admin/cli/main.ts')
  const args = ['--conditions=onceonly-source', program, 'rekey', '--yes', '--json', '--store', address]
  return spawn(process.execPath, args, { env: { ...process.env, ...both }, stdio: ['ignore', 'pipe', 'pipe'] })
}

async function underKey(cluster: Cluster, id: string, table: string, column: string): Promise<number> {
  const under = `select count(*) as n from ${table} where ${column} like '%.${id}.%'`
  return Number((await cluster.sql<{ n: unknown }>(under))[0]?.n)
}

onEveryPlace('rekey on a server', (place) => {
  test('that is killed in its tables continues, and with another key no command runs', async () => {
    await using cluster = await openCluster(place, { env: before })
    const [first] = cluster.servers as [TestServer]
    await work(first)
    await first.stop()
    for (const [table, column] of columns)
      assert.ok((await underKey(cluster, 'k1', table, column)) > 0, `${table}.${column} is encrypted`)
    for (let from = 0; from < COPIES; from += CHUNK) {
      await cluster.sql(
        `insert into messages (id, workspace_id, lead_id, conversation_id, body, channel, status, new_lead, effect_key,
           lock_hash, created_at, status_at)
         with recursive copies (n) as (select ${from} union all select n + 1 from copies where n < ${from + CHUNK - 1})
         select 'copy-' || n, m.workspace_id, m.lead_id, m.conversation_id, m.body, m.channel, 'sent', 0, 'copy-' || n,
           m.lock_hash, m.created_at, m.status_at
         from copies cross join (select * from messages where status = 'sent' order by id desc limit 1) as m`,
      )
    }
    const killed = rekey(cluster)
    const closed = once(killed, 'close')
    await until(
      'a part of the messages is encrypted anew',
      async () => await underKey(cluster, 'k2', 'messages', 'body'),
    )
    killed.kill('SIGKILL')
    await closed
    assert.ok((await underKey(cluster, 'k1', 'messages', 'body')) > 0, 'it was killed in the middle')

    // Beside a server with both keys, which answers from what either of them wrote.
    const server = await cluster.add(both)
    const again = rekey(cluster)
    const over = Promise.all([text(again.stdout), text(again.stderr), once(again, 'close')])
    const to = { recipientPhone: `+1${secrets.phone}`, recipientEmail: `${secrets.email}@example.com` }
    const escalation = { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason: secrets.escalationReason }
    const replayed = await server.post('/case-escalations', escalation, { key: `${secrets.key}-2` })
    assert.deepEqual([replayed.status, replayed.headers.get('idempotent-replayed')], [201, 'true'])
    const [out, err, [code]] = await over
    assert.equal(code, 0, err)
    assert.deepEqual((JSON.parse(out) as { removable: string[] }).removable, ['k1'])
    for (const [table, column] of columns) {
      assert.equal(await underKey(cluster, 'k1', table, column), 0, `${table}.${column}`)
      assert.ok((await underKey(cluster, 'k2', table, column)) > 0, `${table}.${column}`)
    }
    await server.stop()

    const messages = async () => Number((await cluster.sql<{ n: unknown }>('select count(*) as n from messages'))[0]?.n)
    const kept = await messages()
    // The key that was removed, and one that never was.
    for (const wrong of [before, { ONCEONLY_ENCRYPTION_KEYS: `k3=${k1}` }, { ONCEONLY_ENCRYPTION_KEYS: '' }])
      await assert.rejects(cluster.add(wrong), /is encrypted|`k2` encrypted/)
    const last = await cluster.add(later)
    const twice = await last.post('/case-escalations', escalation, { key: `${secrets.key}-2` })
    assert.deepEqual([twice.status, twice.headers.get('idempotent-replayed')], [201, 'true'])
    const sent = await last.send({
      message: secrets.messageBody,
      subject: secrets.messageSubject,
      channel: 'local',
      ...to,
    })
    assert.equal(sent.body.duplicateOnly, true, 'the guard knows the content')
    assert.equal(await messages(), kept)
  })

  test('of a plain store waits for the server, which knows what to encrypt in its tables', async () => {
    await using cluster = await openCluster(place)
    const [plain] = cluster.servers as [TestServer]
    await work(plain)
    await plain.stop()
    const allowed = { ...before, ONCEONLY_ENCRYPTION_ALLOW_PLAIN: 'yes' }
    await using commands = startCommands(process.cwd(), { ...process.env, ...allowed, ONCEONLY_STORE: cluster.address })
    const early = await commands.run('rekey', '--yes')
    assert.equal(early.status, 2)
    assert.match(early.stderr, /keeps tables of its own .*messages.*Start it with these keys/)
    const server = await cluster.add(allowed)
    const done = await commands.run('rekey', '--yes', '--json')
    assert.equal(done.status, 0, done.stderr)
    assert.equal((JSON.parse(done.stdout) as { finished: boolean }).finished, true)
    for (const [table, column] of columns) {
      const rows = await cluster.sql(
        `select 1 from ${table} where ${column} is not null and ${column} not like '%.k1.%'`,
      )
      assert.equal(table === 'onceonly_records' ? 0 : rows.length, 0, `${table}.${column}`)
    }
    await server.stop()
    const last = await cluster.add(before)
    const again = {
      message: secrets.messageBody,
      recipientPhone: `+1${secrets.phone}`,
      recipientEmail: `${secrets.email}@example.com`,
    }
    assert.equal((await last.send({ ...again, channel: 'local' })).body.duplicateOnly, true)
  })
})

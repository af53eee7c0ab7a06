import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { type Commands, startCommands } from '../../support/admin/cli/commands.ts'
import { type Cluster, onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { type MailServer, startMail } from '../../support/service/messages/mail.ts'
import { makeLead, start, store, untilState } from '../../support/service/outreach/outreach.ts'

interface Row {
  readonly kind: string
  readonly id: string
  readonly since: number
  readonly attempts: number
  readonly end: string
  readonly plan?: string | null
  readonly asked: string
  readonly step?: string
  readonly tick?: number
  readonly runId?: string
  readonly key?: string
}

const sorted = (rows: readonly Row[]) => rows.map(({ id }) => id).toSorted()

onEveryPlace('everything unknown', (place) => {
  let mail: MailServer
  let cluster: Cluster
  let one: TestServer
  let commands: Commands
  before(async () => {
    mail = await startMail()
    cluster = await openCluster(place, { env: { ONCEONLY_SMTP_URL: mail.url, ONCEONLY_SEND_TIMEOUT_MS: '60000' } })
    one = cluster.servers[0] as TestServer
    commands = startCommands(process.cwd(), { ...process.env, ONCEONLY_STORE: cluster.address })
  })
  after(async () => {
    await commands[Symbol.asyncDispose]()
    await cluster[Symbol.asyncDispose]()
    await mail[Symbol.asyncDispose]()
  })

  const listed = async () => JSON.parse((await commands.run('unknowns', '--json')).stdout) as Row[]
  const gauges = async () => {
    const headers = { authorization: 'Bearer operator-token-of-tests' }
    const text = await (await fetch(`${one.url}/metrics`, { headers })).text()
    const of = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
    return of('onceonly_dedup_unknown_waiting') + of('onceonly_runs_unknown')
  }
  const everywhere = async (count: number) => {
    const rows = await listed()
    assert.equal(rows.length, count, JSON.stringify(rows))
    const api = await one.admin('GET', '/unknowns')
    assert.deepEqual(sorted((api.body as unknown as { rows: Row[] }).rows), sorted(rows), api.text)
    const page = await one.console('/unknowns')
    assert.deepEqual(sorted((page.body as unknown as { rows: Row[] }).rows), sorted(rows), page.text)
    await until('the metrics count the same', gauges, (sum) => sum === count)
    return rows
  }

  test('the list, the API, the console and the metrics show a step, its message and a record, and each is ended by its command', async () => {
    const lead = await makeLead(one, { recipientEmail: 'lost@example.com' })
    const sequence = await store(one, 'Lost', [{ id: 'mail', type: 'email', template: 'To {{lead.email}}' }])
    const runId = await start(one, sequence, lead)
    await untilState(one, runId, 'unknown')

    const rows = await everywhere(2)
    const step = rows.find(({ kind }) => kind === 'step')
    const record = rows.find(({ kind }) => kind === 'record')
    assert.deepEqual([step?.step, step?.tick, step?.attempts], ['mail', 0, 1])
    assert.ok(step?.runId?.endsWith(runId), step?.runId)
    assert.match(step?.plan ?? '', /To lost@example\.com/, 'what the channel was asked')
    assert.ok((step?.since ?? 0) > 0)
    const text = (await commands.run('unknowns')).stdout
    for (const part of [step?.runId, step?.key, step?.end, record?.id, record?.end]) {
      assert.ok(part !== undefined && text.includes(part), `${part} is missing in ${text}`)
    }

    // Each command as it is printed, with the ending that the operator chose; the value may be left out.
    const args = (end = '') =>
      end
        .replace('onceonly ', '')
        .replace(/ --to .*/, '')
        .split(' ')
    const unasked = await commands.run(...args(step?.end), '--to', 'succeeded')
    assert.deepEqual([unasked.status, /Say --yes/.test(unasked.stderr)], [2, true], unasked.stderr)
    const ended = await commands.run(...args(step?.end), '--to', 'succeeded', '--yes', '--by', 'grace')
    assert.deepEqual([ended.status, ended.stdout], [0, 'Resolved.\n'], ended.stderr)
    await untilState(one, runId, 'succeeded')
    await everywhere(1)
    const failed = await commands.run(...args(record?.end), '--to', 'failed', '--yes')
    assert.equal(failed.status, 0, failed.stderr)
    await everywhere(0)
    assert.equal((await commands.run('unknowns')).stdout, 'Nothing waits for a decision.\n')
    const audit = JSON.parse((await commands.run('audit', '--json')).stdout) as { what: string; result: string }[]
    assert.deepEqual(
      audit.map(({ what, result }) => `${what} ${result}`),
      ['resolve done', 'run.resolve done'],
    )
    assert.equal((await one.admin('GET', '/unknowns?limit=0')).status, 400)
    assert.equal((await one.get('/api/admin/unknowns')).status, 401)
  })
})

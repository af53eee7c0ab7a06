import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { until } from '../../../../src/testing/until.ts'
import { startCommands } from '../../admin/cli/commands.ts'
import { openCluster, type PlaceName, type TestServer } from '../cluster.ts'

type Channel = 'webhook' | 'twilio' | 'smtp'
type MessageStatus = 'sent' | 'failed' | 'queued' | 'unknown'

/** One way in which a provider of one channel misbehaves, and what every interface must report. */
export interface Cell {
  readonly channel: Channel
  readonly behaviour: string
  readonly status: MessageStatus
  readonly code: string
}

/** What a provider does with a message, by a word in its text. */
export const matrix: readonly Cell[] = [
  ...(['webhook', 'twilio'] as const).flatMap((channel): Cell[] => [
    { channel, behaviour: 'silent', status: 'unknown', code: 'timed_out' },
    { channel, behaviour: 'cut', status: 'unknown', code: 'no_answer' },
    { channel, behaviour: 'answers-429', status: 'queued', code: 'http_429' },
    { channel, behaviour: 'answers-500', status: 'unknown', code: 'http_500' },
    { channel, behaviour: 'answers-503', status: 'unknown', code: 'http_503' },
    { channel, behaviour: 'answers-422', status: 'failed', code: 'http_422' },
  ]),
  { channel: 'smtp', behaviour: 'silent', status: 'unknown', code: 'timed_out' },
  { channel: 'smtp', behaviour: 'cut', status: 'unknown', code: 'no_answer' },
  { channel: 'smtp', behaviour: 'says-451', status: 'queued', code: 'smtp_451' },
  { channel: 'smtp', behaviour: 'says-554', status: 'failed', code: 'smtp_554' },
]

/** A provider that fails as long as the test says; afterwards it accepts everything. */
interface Provider extends AsyncDisposable {
  readonly port: number
  /** Calls that had this word in them. */
  seen(word: string): number
  behave(): void
}

async function httpProvider(): Promise<Provider> {
  const bodies: string[] = []
  let behaves = false
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const body = await text(request)
    bodies.push(body)
    const status = behaves ? undefined : /answers-(\d{3})/.exec(body)?.[1]
    if (status !== undefined) return response.writeHead(Number(status)).end()
    if (!behaves && body.includes('cut')) return request.socket.destroy()
    if (!behaves && body.includes('silent')) return undefined
    return response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":"p-1","sid":"SM1"}')
  }
  const server = createHttpServer((request, response) => void serve(request, response))
  return listening(
    server,
    () => server.closeAllConnections(),
    bodies,
    () => (behaves = true),
  )
}

/** Enough SMTP to fail after the whole content has arrived, which is the worst moment. */
async function mailProvider(): Promise<Provider> {
  const mails: string[] = []
  const sockets = new Set<Socket>()
  let behaves = false
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    socket.write('220 ready\r\n')
    let heard = ''
    let inData = false
    socket.on('data', (chunk) => {
      heard += chunk.toString()
      for (let end = heard.indexOf('\r\n'); !inData && end >= 0; end = heard.indexOf('\r\n')) {
        const command = heard.slice(0, end)
        heard = heard.slice(end + 2)
        inData = /^DATA/i.test(command)
        socket.write(inData ? '354 continue\r\n' : /^QUIT/i.test(command) ? '221 bye\r\n' : '250 ok\r\n')
      }
      if (!inData || !heard.endsWith('\r\n.\r\n')) return
      const mail = heard
      ;[heard, inData] = ['', false]
      mails.push(mail)
      const code = behaves ? undefined : /says-(\d{3})/.exec(mail)?.[1]
      if (code !== undefined) socket.write(`${code} no\r\n`)
      else if (!behaves && mail.includes('cut')) socket.destroy()
      else if (behaves || !mail.includes('silent')) socket.write('250 taken\r\n')
    })
  })
  const endAll = () => sockets.forEach((socket) => socket.destroy())
  return listening(server, endAll, mails, () => (behaves = true))
}

async function listening(server: Server, endAll: () => void, calls: string[], behave: () => void): Promise<Provider> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    seen: (word) => calls.filter((call) => call.includes(word)).length,
    behave,
    async [Symbol.asyncDispose]() {
      endAll()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** How long a silent provider is waited for. Every other answer comes from this machine, and at once. */
const SEND_TIMEOUT_MS = 4_000

interface Explained {
  readonly record: {
    readonly state: string
    readonly calls: number
    readonly failure: { readonly code?: string } | null
  }
  readonly answers: readonly { readonly topic: string; readonly answer: string; readonly alarming: boolean }[]
}

/** Every cell on a started server with real providers: what the caller, the operators and the provider say must agree. */
export function checkMatrix(place: PlaceName, cells: readonly Cell[]): void {
  describe(`providers that fail, on ${place}`, () => {
    test('caller, unknowns, explain, metrics, console and provider agree, and each case can be ended', async () => {
      await using http = await httpProvider()
      await using mail = await mailProvider()
      await using cluster = await openCluster(place, {
        env: {
          ONCEONLY_MESSAGE_WEBHOOK_URL: `http://127.0.0.1:${http.port}/hook`,
          ONCEONLY_TWILIO_URL: `http://AC1:secret@127.0.0.1:${http.port}/Messages.json?From=%2B15550100`,
          ONCEONLY_SMTP_URL: `smtp://127.0.0.1:${mail.port}`,
          ONCEONLY_SEND_TIMEOUT_MS: String(SEND_TIMEOUT_MS),
        },
      })
      await using commands = startCommands(process.cwd(), { ...process.env, ONCEONLY_STORE: cluster.address })
      const one = cluster.servers[0] as TestServer
      const json = async <T>(...args: string[]) => JSON.parse((await commands.run(...args, '--json')).stdout) as T

      // 1. Every message reaches its provider once, and its caller gets the outcome.
      const sent = await Promise.all(
        cells.map(async (cell, at) => {
          const { channel, behaviour, status } = cell
          const word = `${behaviour}-${channel}-${at}`
          const to = channel === 'smtp' ? { recipientEmail: `p${at}@example.com` } : { recipientPhone: `+4915177${at}` }
          const answer = await one.send({ channel, ...to, message: word })
          assert.equal(answer.body.status, status, `${word}: ${answer.text}`)
          return { cell, word, id: answer.body.message?._id ?? '' }
        }),
      )
      const seen = (channel: Channel, word: string) => (channel === 'smtp' ? mail : http).seen(word)

      // 2. Every interface has the same list of unknown messages, and the alert's numbers are its length.
      const unknown = sent.filter(({ cell }) => cell.status === 'unknown').map(({ id }) => id)
      type Row = { readonly identity: { readonly key: string }; readonly end: string; readonly asked: string }
      const rows = await json<Row[]>('unknowns')
      const keys = (list: readonly Row[]) => list.map(({ identity }) => identity.key).toSorted()
      assert.deepEqual(keys(rows), unknown.toSorted())
      const api = await one.admin('GET', '/unknowns')
      assert.deepEqual(keys((api.body as unknown as { rows: Row[] }).rows), unknown.toSorted())
      const page = await one.console('/unknowns')
      assert.deepEqual(keys((page.body as unknown as { rows: Row[] }).rows), unknown.toSorted())
      const headers = { authorization: 'Bearer operator-token-of-tests' }
      const metrics = async () => (await fetch(`${one.url}/metrics`, { headers })).text()
      const counts = new RegExp(`^onceonly_dedup_unknown_waiting ${unknown.length}$`, 'm')
      await until('the gauge counts them', metrics, (lines) => counts.test(lines))

      // 3. Explain says how often the provider was called, how that is known, and with which code it failed.
      const states = { sent: 'succeeded', failed: 'failed_terminal', queued: 'failed_retryable', unknown: 'unknown' }
      for (const { cell, word, id } of sent) {
        const [explained] = await json<Explained[]>('explain', id)
        const { record, answers } = explained as Explained
        const calls = () => seen(cell.channel, word)
        if (cell.status !== 'queued') assert.deepEqual([record.calls, calls()], [1, 1], word)
        else {
          // A message that was put off may have been tried again meanwhile; the last call is recorded before it is made.
          assert.ok(record.calls >= 1, word)
          await until(
            `the provider has seen the calls of ${word}`,
            async () => calls(),
            (count) => count >= record.calls,
          )
        }
        if (record.state !== 'in_progress') {
          assert.deepEqual([record.state, record.failure?.code], [states[cell.status], cell.code], word)
        }
        const provider = answers.find(({ topic }) => topic === 'provider')
        assert.match(provider?.answer ?? '', new RegExp(`calls? of ${cell.channel}`), word)
      }

      // 4. An operator resolves the unknown ones by the printed command, the others end by themselves.
      http.behave()
      mail.behave()
      for (const { end } of rows) {
        const command = end
          .replace('onceonly ', '')
          .replace(/ --to .*/, '')
          .split(' ')
        const ended = await commands.run(...command, '--to', 'succeeded', '--yes')
        assert.equal(ended.status, 0, ended.stderr)
      }
      for (const { cell, word, id } of sent) {
        const after = cell.status === 'failed' ? 'failed' : 'sent'
        await until(`${word} is ${after}`, async () => {
          await cluster.advance(60_000)
          return (await one.get(`/api/messages/${id}`)).body['status'] === after
        })
        const [explained] = await json<Explained[]>('explain', id)
        assert.equal(
          explained?.record.calls,
          seen(cell.channel, word),
          `${word}: what explain shows, and what was seen`,
        )
      }
      assert.deepEqual(await json<Row[]>('unknowns'), [])
      await until('the gauge counts none', metrics, (lines) => /^onceonly_dedup_unknown_waiting 0$/m.test(lines))
    })
  })
}

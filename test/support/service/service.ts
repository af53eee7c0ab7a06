import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import type { FieldError } from '../../../service/http/problem.ts'

const demoKey = 'demo-key-of-tests'
const operatorToken = 'operator-token-of-tests'

/** As `npm start` does. */
const START = ['--max-semi-space-size=8', '--conditions=onceonly-source']

/** Starts the server as a process of its own, as a user would, on a free port and in a folder of its own. */
export function start(env: Readonly<Record<string, string>>, args: readonly string[] = []): ChildProcess {
  return spawn(process.execPath, [...START, join(import.meta.dirname, '../../../service/main.ts'), ...args], {
    env: {
      ...process.env,
      PORT: '0',
      HOST: '',
      ONCEONLY_DATA: '',
      ONCEONLY_DEMO_KEY: demoKey,
      ONCEONLY_OPERATOR_TOKEN: operatorToken,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

/** Waits for the end and returns everything that was printed. */
export async function ended(child: ChildProcess): Promise<{ code: number | null; out: string; err: string }> {
  const printed = { out: '', err: '' }
  child.stdout?.on('data', (chunk) => (printed.out += String(chunk)))
  child.stderr?.on('data', (chunk) => (printed.err += String(chunk)))
  await once(child, 'close')
  return { code: child.exitCode, ...printed }
}

/** An answer that has arrived whole; which members its body has depends on the status. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: {
    readonly escalationId?: string
    readonly type?: string
    readonly retryable?: boolean
    readonly errorCode?: string
    readonly errors?: readonly FieldError[]
  }
}

export interface TestService extends AsyncDisposable {
  readonly url: string
  /** Its database. */
  readonly file: string
  get(path: string): Promise<Response>
  post(key: string | undefined, body: string, apiKey?: string): Promise<Answer>
  escalate(key: string | undefined, body: unknown, apiKey?: string): Promise<Answer>
  /** As an operator; returns the body. */
  admin(method: string, path: string, body?: unknown): Promise<unknown>
  /** How many rows the system has in its tables, past every interface. */
  rows(): Promise<{ escalations: number; audit: number; outbox: number }>
  /** Ends the process as a deployment would, and starts another one on the same data. Returns the exit status. */
  restart(): Promise<number | null>
}

export async function startedService(): Promise<TestService> {
  const data = await mkdtemp(join(tmpdir(), 'onceonly-service-'))
  let running = await listening(data)
  const stop = async () => {
    running.child.kill('SIGTERM')
    if (running.child.exitCode === null) await once(running.child, 'exit')
    return running.child.exitCode
  }
  const post = async (key: string | undefined, body: string, apiKey = demoKey): Promise<Answer> => {
    const keyed = key === undefined ? {} : { 'idempotency-key': key }
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${apiKey}`, ...keyed }
    const response = await fetch(`${running.url}/case-escalations`, { method: 'POST', headers, body })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Answer['body'] }
  }
  return {
    get url() {
      return running.url
    },
    file: join(data, 'onceonly.db'),
    get: (path) => fetch(running.url + path, { headers: { authorization: `Bearer ${demoKey}` } }),
    post,
    escalate: (key, body, apiKey) => post(key, JSON.stringify(body), apiKey),
    async admin(method, path, body) {
      const headers = {
        authorization: `Bearer ${operatorToken}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      }
      const response = await fetch(running.url + path, {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
      return text === '' ? null : JSON.parse(text)
    },
    rows: async () => countRows(join(data, 'onceonly.db')),
    async restart() {
      const code = await stop()
      running = await listening(data)
      return code
    },
    async [Symbol.asyncDispose]() {
      await stop()
      await rm(data, { recursive: true, force: true })
    },
  }
}

function countRows(path: string): { escalations: number; audit: number; outbox: number } {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 60_000 })
  const count = (table: string) => Number(db.prepare(`select count(*) as n from ${table}`).get()?.['n'])
  const counts = {
    escalations: count('case_escalations'),
    audit: count('escalation_audit'),
    outbox: count('onceonly_outbox_ids'),
  }
  db.close()
  return counts
}

async function listening(data: string): Promise<{ child: ChildProcess; url: string }> {
  const child = start({ ONCEONLY_DATA: data })
  child.stderr?.pipe(process.stderr)
  if (child.stdout === null) throw new Error('The server has no output')
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /http:\/\/\S+/.exec(line)?.[0]
    if (url !== undefined) {
      child.stdout.resume()
      return { child, url }
    }
  }
  throw new Error('The server ended before it listened')
}

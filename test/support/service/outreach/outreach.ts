import assert from 'node:assert/strict'
import { until } from '../../../../src/testing/until.ts'
import type { Answer, Asked, TestServer } from '../cluster.ts'

export interface SeenStep {
  readonly id: string
  readonly type: string
  readonly key: string
  readonly tick: number
  readonly attempts: number
  readonly state: string
  readonly result: Readonly<Record<string, unknown>> | null
  readonly error: string | null
}

export interface SeenRun {
  readonly runId: string
  readonly state: string
  readonly version: number
  readonly leadId: string
  readonly error: string | null
  readonly steps: readonly SeenStep[]
}

export interface SeenReplay {
  readonly verdict: string
  readonly performed: number
  readonly blocked: number
  readonly steps: readonly {
    readonly id: string
    readonly key: string
    readonly status: string
    readonly originalResult: unknown
    readonly replayedResult: unknown
    readonly identical: boolean | null
    readonly diff: readonly { readonly path: string; readonly original?: unknown; readonly replayed?: unknown }[]
  }[]
}

let leads = 0

/** A lead of its own for each call; the message that makes it goes to the local mailbox. */
export async function makeLead(
  server: TestServer,
  to: { readonly recipientEmail?: string; readonly recipientPhone?: string },
  asked: Asked = {},
): Promise<string> {
  const made = await server.send({ channel: 'local', message: `Lead ${++leads}`, ...to }, asked)
  assert.equal(made.body.success, true, made.text)
  return String(made.body.leadId)
}

export async function store(server: TestServer, name: string, steps: unknown, asked: Asked = {}): Promise<string> {
  const stored = await server.post('/api/sequences', { name, steps }, asked)
  assert.equal(stored.status, 201, stored.text)
  return String(stored.body['id'])
}

export async function start(server: TestServer, sequenceId: string, leadId: string, runId?: string): Promise<string> {
  const body = runId === undefined ? { leadId } : { leadId, runId }
  const started = await server.post(`/api/sequences/${sequenceId}/runs`, body)
  assert.equal(started.status, 201, started.text)
  return String(started.body['runId'])
}

export async function runNow(server: TestServer, runId: string): Promise<SeenRun> {
  const answer = await server.get(`/api/runs/${runId}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.body as unknown as SeenRun
}

export function untilState(server: TestServer, runId: string, ...states: readonly string[]): Promise<SeenRun> {
  return until(
    `the run is ${states.join(' or ')}`,
    () => runNow(server, runId),
    ({ state }) => states.includes(state),
  )
}

export async function replay(server: TestServer, runId: string, body?: unknown): Promise<SeenReplay> {
  const answer = await server.post(`/api/runs/${runId}/replay`, body)
  assert.equal(answer.status, 200, answer.text)
  return answer.body as unknown as SeenReplay
}

export function resolve(server: TestServer, { runId, steps }: SeenRun, id: string, body: unknown): Promise<Answer> {
  const key = steps.find((step) => step.id === id)?.key
  return server.post(`/api/runs/${runId}/steps/${key}/resolve`, body)
}

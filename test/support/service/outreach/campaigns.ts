import assert from 'node:assert/strict'
import { until } from '../../../../src/testing/until.ts'
import type { Asked, TestServer } from '../cluster.ts'

export interface SeenCampaign {
  readonly campaignId: string
  readonly state: string
  readonly version: number | null
  readonly leads: number | null
  readonly progress: Readonly<Record<string, number>>
  readonly partOf: string | null
  readonly dueAt: string | null
  readonly error: string | null
}

export async function begin(server: TestServer, body: object, asked: Asked = {}): Promise<string> {
  const begun = await server.post('/api/campaigns', body, asked)
  assert.equal(begun.status, 201, begun.text)
  return String(begun.body['campaignId'])
}

export async function campaignNow(server: TestServer, id: string): Promise<SeenCampaign> {
  const answer = await server.get(`/api/campaigns/${id}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.body as unknown as SeenCampaign
}

export function untilCampaign(
  server: TestServer,
  id: string,
  what: string,
  isSo: (campaign: SeenCampaign) => boolean,
): Promise<SeenCampaign> {
  return until(`the campaign ${what}`, () => campaignNow(server, id), isSo)
}

/** The states in which leads are. */
export function statesOf({ progress }: Pick<SeenCampaign, 'progress'>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(progress).filter(([, count]) => count > 0))
}

export interface SeenEvent {
  readonly id: number
  readonly name: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Reads server-sent events until the stream ends, or the caller has seen enough. */
export async function* eventsOf(
  server: Pick<TestServer, 'url' | 'apiKey'>,
  path: string,
  lastEventId?: number,
): AsyncGenerator<SeenEvent, undefined> {
  const left = new AbortController()
  const response = await fetch(server.url + path, {
    headers: {
      authorization: `Bearer ${server.apiKey}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) }),
    },
    signal: left.signal,
  })
  if (response.status === 204) return
  assert.equal(response.status, 200)
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/)
  assert.ok(response.body)
  try {
    let text = ''
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const frames = (text + chunk).split('\n\n')
      text = frames.pop() ?? ''
      for (const frame of frames) {
        const fields = new Map(
          frame.split('\n').map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]),
        )
        const [id, name, data] = ['id', 'event', 'data'].map((field) => fields.get(field))
        if (name !== undefined) yield { id: Number(id), name, data: JSON.parse(data ?? 'null') as SeenEvent['data'] }
      }
    }
  } finally {
    left.abort()
  }
}

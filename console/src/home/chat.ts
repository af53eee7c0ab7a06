import { createStreamClient, createWebSocketTransport, type StreamClient } from 'onceonly/stream'
import { type Api, fresh, settled } from './api.ts'
import { checked, type Demonstration } from './demo.ts'

/** The one that is cut off, and one that is not. */
const regions = ['tokyo', 'frankfurt'] as const
type Region = (typeof regions)[number]

interface Line {
  readonly text: string
  /** Its place in the one order; null until it has one. */
  readonly final: number | null
}

export const chat: Demonstration = {
  name: 'chat',
  title: 'Chat',
  promise: 'A region that is cut off keeps talking; afterwards all regions have one order, and nothing twice.',
  button: 'Cut a region',
  operations: 'PUT /api/chat/regions/tokyo/link, then a WebSocket in each region',
  async run(api) {
    const room = `home-${fresh()}`
    const clients = await Promise.all(regions.map((region) => openClient(api, room, region)))
    try {
      await link(api, 'cut')
      const sent = clients.map((client, at) => client.send({ by: names[at], text: `Hello from ${regions[at]}` }))
      for (const { accepted } of await Promise.all(sent)) await accepted
      const apart = await bothRead(api, room, (lines) => lines.length > 0)
      await link(api, 'joined')
      const joined = await bothRead(
        api,
        room,
        (lines) => lines.length > 1 && lines.every(({ final }) => final !== null),
      )
      const [first, second] = joined.map((lines) => lines.map((line) => line.text).join(', '))
      const isOne = first === second && joined.every((lines) => lines.length === regions.length)
      return {
        answers: regions.map((region, at) => ({
          title: region,
          badge: `${joined[at]?.length ?? 0} messages`,
          tone: isOne ? 'good' : 'wait',
          facts: [
            [`While tokyo was cut off`, textsOf(apart[at])],
            ['Joined again', textsOf(joined[at])],
          ],
        })),
        kept: isOne,
        verdict: isOne ? 'Both regions have the same messages in the same order.' : 'The regions differ.',
        links: [{ text: 'This room in the chat', address: `/chat?room=${room}` }],
      }
    } finally {
      await link(api, 'joined')
      await Promise.all(clients.map((client) => client.stop()))
    }
  },
}

const names = ['Ada', 'Grace']

function openClient({ demo }: Api, room: string, region: Region): Promise<StreamClient> {
  return createStreamClient({
    room,
    regions: [region],
    mode: 'at-least-once',
    from: 'start',
    receiver: { message: () => {} },
    transport: createWebSocketTransport({
      url: (each) => `${location.origin.replace('http', 'ws')}/chat/socket?region=${each}`,
      token: () => demo.apiKey,
    }),
  })
}

async function link(api: Api, state: 'cut' | 'joined'): Promise<void> {
  checked(await api.send('PUT', `/api/chat/regions/${regions[0]}/link`, { body: { state } }))
}

function bothRead(
  api: Api,
  room: string,
  isThere: (lines: readonly Line[]) => boolean,
): Promise<readonly (readonly Line[])[]> {
  return settled(
    () => Promise.all(regions.map((region) => readRoom(api, room, region))),
    (all) => all.every(isThere),
  )
}

/** In the final order, as far as there is one. */
async function readRoom(api: Api, room: string, region: Region): Promise<readonly Line[]> {
  const { body } = await api.send('GET', `/api/chat/rooms/${room}/messages?region=${region}`)
  const said = (body['messages'] ?? []) as readonly {
    readonly body: { readonly text: string }
    readonly final: number | null
  }[]
  return said
    .map(({ body: { text }, final }) => ({ text, final }))
    .toSorted((a, b) => (a.final ?? Number.MAX_SAFE_INTEGER) - (b.final ?? Number.MAX_SAFE_INTEGER))
}

function textsOf(lines: readonly Line[] | undefined): string {
  return (lines ?? []).map(({ text }, at) => `${at + 1}. ${text}`).join('  ')
}

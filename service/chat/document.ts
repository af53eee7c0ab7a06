import { isStreamName } from 'onceonly/stream/protocol'
import Type from 'typebox'
import { oneOf, ruled } from '../http/input.ts'
import {
  count,
  type Declaration,
  instant,
  instantOrNull,
  list,
  named,
  natural,
  record,
  text,
} from '../openapi/declaration.ts'
import { DELAY_MS_MOST, isRoom, OFFLINE_MS_MOST, ROOM_CHARS_MOST, regionNames } from './words.ts'

/** The requests of the chat: their schemas check, type and document them. The conversation itself goes over the WebSocket `/chat/socket?region=…`. */

const system = {
  name: 'chat',
  about:
    'People in several regions talk in rooms over `/chat/socket?region=…`, with the client of `onceonly/stream`: nothing ' +
    'is lost or shown twice, a reply never comes before what it replies to, and in the end all clients have one order. ' +
    'These routes are what a page needs beside that connection.',
}

const notes = { outbox: 'nothing is published', externalCalls: 'none', tests: 'test/contract/service/chat.test.ts' }

const delay = Type.Integer({ minimum: 0, maximum: DELAY_MS_MOST })
const regionName = oneOf(regionNames)
const state = oneOf(['joined', 'cut'])
const region = named('ChatRegion', record({ region: regionName, state, delayMs: delay, clients: count }))
const identity = { client: text, epoch: count, cseq: count }
const counts = Type.Unsafe<Readonly<Record<string, number>>>({ type: 'object', additionalProperties: count })
const room = {
  room: ruled(
    Type.String({ description: `The name of a room: at most ${ROOM_CHARS_MOST} letters, digits, dots, dashes.` }),
    (name) => (isRoom(name) ? null : 'is not the name of a room'),
  ),
}
const inRegion = {
  region: Type.Optional(oneOf(regionNames, { default: regionNames[0], description: 'Whose log of the room is read.' })),
}

const message = named(
  'ChatMessage',
  record({
    ...identity,
    log: text,
    n: count,
    seen: counts,
    replyTo: { anyOf: [record(identity), { type: 'null' }] },
    body: {},
    acceptedAt: instant,
    final: { type: ['integer', 'null'] },
    clock: counts,
  }),
)

export const listRegions: Declaration = {
  id: 'chat.regions',
  system,
  summary: 'The regions of this server, and how they are joined',
  description: '`clients` counts the connections of this workspace to this process.',
  access: 'api key',
  answers: {
    200: {
      about: 'All of them, and whose key it is.',
      schema: record({ workspace: text, caller: text, regions: list(region) }),
    },
  },
}

export const setRegionLink = {
  id: 'chat.regions.link',
  system,
  summary: 'Cut a region off from the others, or join it again',
  description:
    'A switch of the demo: it breaks the network between the regions for the rooms of this workspace, in this process. ' +
    'Clients in the region still reach each other.',
  access: 'api key',
  path: { region: 'The region to cut off or to join.' },
  body: { schema: Type.Object({ state, delayMs: Type.Optional(delay) }), example: { state: 'joined' } },
  answers: { 200: { about: 'How it is joined now.', schema: region }, 404: { about: 'There is no such region.' } },
  repeat: natural('chat.regions.link', {
    repeats: 'the link is in the state that was asked for, however often',
    businessUniqueness: 'A region has one link in a workspace.',
    ...notes,
  }),
} satisfies Declaration

export const setClientLink = {
  id: 'chat.clients.link',
  system,
  summary: 'Make the connection of a client slow, or take it away for a while',
  description:
    'A switch of the demo, in this process. `delayMs` is added each way; `offlineMs` cuts the connection at once and lets no ' +
    'other in until then.',
  access: 'api key',
  path: {
    client: ruled(Type.String({ description: 'The name of the client, as its identity has it.' }), (name) =>
      isStreamName(name) ? null : 'is not the name of a client',
    ),
  },
  body: {
    schema: Type.Object({
      delayMs: Type.Optional(delay),
      offlineMs: Type.Optional(Type.Integer({ minimum: 0, maximum: OFFLINE_MS_MOST })),
    }),
    example: { delayMs: 250, offlineMs: 0 },
  },
  answers: {
    200: { about: 'How it is now.', schema: record({ client: text, delayMs: delay, offlineUntil: instantOrNull }) },
  },
  repeat: natural('chat.clients.link', {
    repeats: 'the link is as it was asked for; a time offline counts from the last request',
    businessUniqueness: 'A client has one link in a workspace.',
    ...notes,
  }),
} satisfies Declaration

export const readMessages = {
  id: 'chat.rooms.messages',
  system,
  summary: 'What was said in a room, with what caused what',
  description:
    'The newest messages in the causal order of one region. `clock` counts, by sender, the messages of this list that came ' +
    'before each one, itself included: two messages are concurrent when neither clock covers the other. `final` is the ' +
    'place in the one order that all regions have, once it is given.',
  access: 'api key',
  path: room,
  query: inRegion,
  answers: {
    200: {
      about: 'Oldest first.',
      schema: record({ region: regionName, messages: list(message) }),
    },
  },
} satisfies Declaration

export const readShiViz = {
  id: 'chat.rooms.shiviz',
  system,
  summary: 'The same history as a log for the ShiViz viewer',
  description: 'The header `X-ShiViz-Parser` is the regular expression to open it with.',
  access: 'api key',
  path: room,
  query: inRegion,
  answers: {
    200: {
      about: 'A host and its clock on one line, what was said on the next.',
      schema: text,
      type: 'text/plain',
      headers: { 'X-ShiViz-Parser': 'How the viewer reads it.', 'Content-Disposition': 'A name for the file.' },
    },
  },
} satisfies Declaration

export const readDemo: Declaration = {
  id: 'chat.demo',
  system,
  summary: 'The secrets of the demo, for a page on the same machine',
  description:
    'Only on a server with a demo, which listens on loopback, and only to a request of the same machine that no proxy ' +
    'passed on.',
  access: 'anyone',
  answers: {
    200: {
      about: 'The key of the demo workspace, the secret of `POST /hooks/s3`, and whether the switches are there.',
      schema: record({ apiKey: text, hookSecret: text, switches: Type.Boolean() }),
    },
    404: { about: 'This server has no demo, or the request comes from elsewhere.' },
  },
}

import { createStreamClient, createWebSocketTransport, type StreamClient } from 'onceonly/stream'
import { createStreamJudge } from '../streams/simulation/judge.ts'
import type { System, World } from './world.ts'

const REGIONS = ['frankfurt', 'tokyo', 'virginia'] as const
const PEOPLE = 6
const SAY_EVERY_MS = { least: 200, most: 1_200 }
const MOVES = 0.03
/** A client without acknowledgements stops writing after so many messages. */
const PENDING_MOST = 20

interface Person {
  readonly name: string
  readonly client: StreamClient
  /** Shown since the last message: the causes of the next one. */
  causes: number[]
  said: number
}

/** One room, people in three regions at two servers: every accepted message once for each client, after its causes. */
export function createChat(world: World): System {
  const { network, random, apiKey } = world
  const judge = createStreamJudge(() => performance.now(), false)
  const people: Person[] = []
  /** A way is a region at one of the servers. */
  const ways = network.sockets.flatMap((_, at) => REGIONS.map((region) => `${region}-${at}`))
  const underWay = new Set<Promise<void>>()
  let uids = 0

  function urlOf(way: string): string {
    const [region, at] = way.split('-')
    return `${network.sockets[Number(at)]?.url.replace('http', 'ws')}/chat/socket?region=${region}`
  }

  async function enter(name: string): Promise<Person> {
    const from = random.below(ways.length)
    const person: Omit<Person, 'client'> = { name, causes: [], said: 0 }
    const client = await createStreamClient({
      room: 'storm',
      regions: [...ways.slice(from), ...ways.slice(0, from)],
      transport: createWebSocketTransport({ url: urlOf, token: () => apiKey }),
      mode: 'at-least-once',
      from: 'start',
      receiver: {
        message({ body }) {
          const { uid } = body as { uid: number }
          judge.shown(name, 1, uid)
          judge.applied(name, uid, false)
          person.causes.push(uid)
        },
        ordered: (identity, place) => judge.ordered(name, identity, place),
        reset: ({ why }) => judge.fail('nothing_lost', `${name} had to start over: ${why}`),
      },
      onIdentity: (_identity, why) => judge.fail('identity', `${name} had to take another identity: ${why}`),
      onDoubt: (messages) => judge.fail('nothing_lost', `${name} has ${messages.length} messages in doubt`),
      bounds: { reconnectBaseMs: 50, reconnectCapMs: 1_000 },
    })
    return Object.assign(person, { client })
  }

  /** Resolves as soon as it is sent: people do not wait for an acknowledgement before the next message. */
  async function say(person: Person): Promise<void> {
    const uid = ++uids
    judge.said({ uid, sender: person.name, index: person.said++, causes: person.causes })
    person.causes = []
    const { identity, accepted } = await person.client.send({ uid })
    const acknowledged = accepted.then(() => {
      judge.tookIn(uid, identity)
      judge.acknowledged(uid)
    })
    const settled = acknowledged
      .catch((error: unknown) => judge.fail('nothing_lost', `${uid} of ${person.name}: ${String(error)}`))
      .finally(() => underWay.delete(settled))
    underWay.add(settled)
  }

  return {
    name: 'chat',
    lanes: PEOPLE,
    async begin() {
      for (let at = 0; at < PEOPLE; at++) people.push(await enter(`person-${at}`))
    },
    async command(number) {
      const person = people[number % PEOPLE]
      if (person === undefined) return
      if (random.chance(MOVES)) person.client.moveTo(random.pick(ways))
      if (person.client.pending < PENDING_MOST) await say(person)
      await new Promise((resolve) => {
        setTimeout(resolve, SAY_EVERY_MS.least + random.below(SAY_EVERY_MS.most - SAY_EVERY_MS.least))
      })
    },
    async left() {
      if (underWay.size > 0) return [`${underWay.size} messages of the chat are not accepted`]
      const missing = judge.complete(people.map(({ name }) => name))
      return missing === null || judge.failure !== null ? [] : [`chat: ${missing}`]
    },
    async judge() {
      judge.end(people.map(({ name }) => name))
      const { failure } = judge
      return failure === null ? [] : [`chat, ${failure.rule}: ${failure.text}`]
    },
    figures: () => ({ commands: uids, accepted: judge.accepted.size }),
    async stop() {
      await Promise.all(people.map(({ client }) => client.stop()))
    },
  }
}

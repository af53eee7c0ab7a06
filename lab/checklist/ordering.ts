import type { Row } from './row.ts'

const copies = 'src/streams/parts/dedup.test.ts'
const replies = 'src/streams/server/reply.test.ts'
const order = 'src/streams/server/order.test.ts'
const intake = 'src/streams/client/intake.test.ts'
const client = 'src/streams/server/client.test.ts'
const logs = 'test/contract/streams/logs.test.ts'
const chat = 'test/contract/service/chat.test.ts'
const wallClocks = 'src/streams/server/wall-clocks.test.ts'
const lateReply = 'a reply from a region whose clock is an hour behind comes after its question'
const hundred = {
  file: 'test/proof/streams/hundred.test.ts',
  name: 'a hundred clients in five regions, partitions, half a minute offline, a slow link, concurrent replies: all see all',
}

/** Order of messages between clients and regions. */
export const ordering: readonly Row[] = [
  {
    id: 'O6',
    promise: 'A reply is never shown before what it replies to; concurrent messages come in any order',
    removals: [
      {
        without: 'a message waits for its causes, not only for those of its sender',
        file: 'src/streams/parts/causal.ts',
        find: 'if (this.#count(node) < needed) return',
        replace: 'if (node === sender && this.#count(node) < needed) return',
        noticed: [
          { file: order, name: 'a reply is never shown before what it replies to; the buffer says what it waits for' },
          { file: order, name: 'a causal buffer delivers everything once, and never before its causes' },
        ],
      },
      {
        without: 'what waits is looked at again when its cause comes',
        file: 'src/streams/parts/causal.ts',
        find: 'ready.push(each.caused)',
        replace: '',
        noticed: [{ file: order, name: 'a causal buffer delivers everything once, and never before its causes' }],
      },
      {
        without: 'a region merges an entry after its causes',
        file: 'src/streams/server/room.ts',
        find: '{ ...entry.seen, [entry.log]: entry.n }',
        replace: '{ [entry.log]: entry.n }',
        noticed: [
          {
            file: 'src/streams/server/puller.test.ts',
            name: 'what waits for a cause is asked for calmly, and is there as soon as the cause is',
          },
        ],
      },
      {
        without: 'a reply has its target among its causes, whatever its author claims to have seen',
        file: 'src/streams/log/memory-log.ts',
        find: 'const context = withCause(seen, target)',
        replace: 'const context = seen',
        noticed: [{ file: replies, name: 'a region that has the reply first waits for its target' }],
      },
      {
        without: 'a client replies only to what it received',
        file: 'src/streams/client/client.ts',
        find: 'if (replyTo !== null && !mayReplyTo(replyTo)) throw',
        replace: 'if (false) throw',
        noticed: [
          { file: replies, name: 'a client refuses a reply to what it never received, before anything is kept' },
        ],
      },
      {
        without: 'a region accepts only what it has the causes of',
        file: 'src/streams/server/session-sends.ts',
        find: 'if (!covers(room.position, frame.seen)) return lag',
        replace: 'if (false) return lag',
        noticed: [
          {
            file: 'src/streams/server/session.test.ts',
            name: 'a client that has seen more than the region waits alone, and gets what it waits for',
          },
        ],
      },
    ],
  },
  {
    id: 'O7',
    promise: 'One total order where it is asked for, from one sequencer at a time',
    removals: [
      {
        without: 'a sequencer that was replaced gives out nothing',
        file: 'src/streams/parts/sequencer.ts',
        find: 'if (this.#fencedBy !== null) {',
        replace: 'if (false) {',
        noticed: [
          { file: order, name: 'a sequencer that was replaced gives out nothing more, and its places are old' },
        ],
      },
      {
        without: 'a reader takes no place of a sequencer that was replaced',
        file: 'src/streams/parts/sequencer.ts',
        find: 'if (epoch < this.#epoch || ',
        replace: 'if (',
        noticed: [
          { file: order, name: 'a sequencer that was replaced gives out nothing more, and its places are old' },
        ],
      },
      {
        without: 'only the holder of a room’s order appends to it',
        file: 'src/streams/log/sql-order.ts',
        find: ' || Number(row.fence) !== batch.fence) return',
        replace: ') return',
        noticed: [
          { file: logs, name: 'the final order has no gap and no second copy, and only one holder adds to it' },
        ],
      },
      {
        without: 'a message has one place',
        file: 'src/streams/log/sql-order.ts',
        find: 'where not exists (select 1 from onceonly_stream_order_rows as o where o.room = ? and ${SAME})',
        replace: 'where cast(? as text) is not null',
        noticed: [
          { file: logs, name: 'the final order has no gap and no second copy, and only one holder adds to it' },
        ],
      },
    ],
  },
  {
    id: 'O8',
    promise: 'At most once, at least once and effectively once are modes that the receiver names',
    removals: [
      {
        without: 'at most once means the position first',
        file: 'src/streams/parts/delivery.ts',
        find: 'await this.#storage.advance(position)\n        await effect()',
        replace: 'await effect()\n        await this.#storage.advance(position)',
        noticed: [
          { file: copies, name: 'the modes differ in what a crash does' },
          { file: client, name: 'a restart in the middle of an effect' },
        ],
      },
      {
        without: 'at least once means the effect first',
        file: 'src/streams/parts/delivery.ts',
        find: 'await effect()\n        await this.#storage.advance(position)',
        replace: 'await this.#storage.advance(position)\n        await effect()',
        noticed: [
          { file: copies, name: 'the modes differ in what a crash does' },
          { file: client, name: 'a restart in the middle of an effect' },
        ],
      },
      {
        without: 'effectively once means that the key and the effect are kept together',
        file: 'src/streams/parts/delivery.ts',
        find: 'return this.#storage.settle(key, position, effect)',
        replace: 'return effect().then(() => true)',
        noticed: [{ file: copies, name: 'the modes differ in what a crash does' }],
      },
    ],
  },
  {
    id: 'O9',
    promise:
      'A group chat of 100 people in 5 regions, through partitions, half a minute offline, a link of 500 ms and two replies at once',
    removals: [
      {
        without: 'regions pull what a hint only announces',
        file: 'src/streams/server/puller.ts',
        find: 'room.offer(answer.entries)',
        replace: '',
        noticed: [
          {
            file: chat,
            name: 'a region is cut off, clients reply on both sides, it is joined again: all converge on one order',
          },
          hundred,
        ],
      },
      {
        without: 'pending messages are sent again when a client is back',
        file: 'src/streams/client/client.ts',
        find: 'outgoing.reconnected()',
        replace: '',
        noticed: [hundred],
      },
      {
        without: 'a second copy of a message is not shown',
        file: 'src/streams/parts/regions.ts',
        find: 'const copy = this.#identities.has(entry.identity)',
        replace: 'const copy = false',
        noticed: [
          {
            file: order,
            name: 'regions merge each other’s logs in causal order, and a second copy is marked everywhere',
          },
        ],
      },
      {
        without: 'a slow link of the demo is slow',
        file: 'service/chat/slow-link.ts',
        find: 'if (delayMs === 0 && up.empty) inner.received(data)',
        replace: 'if (true) inner.received(data)',
        noticed: [
          {
            file: chat,
            name: 'a client that is taken off the network comes back with nothing lost; a slow link is slow',
          },
        ],
      },
    ],
  },
  {
    id: 'O10',
    promise: 'Order survives reconnects, and wall clocks never decide it',
    removals: [
      {
        without: 'a client takes only the next entry of a log',
        file: 'src/streams/client/intake.ts',
        find: 'entry.n !== have + 1 || ',
        replace: '',
        noticed: [{ file: intake, name: 'an entry behind a gap is not taken' }],
      },
      {
        without: 'a client takes an entry after its causes',
        file: 'src/streams/client/intake.ts',
        find: ' || !covers(arrived, entry.seen)',
        replace: '',
        noticed: [{ file: intake, name: 'an entry before its cause is not taken' }],
      },
      {
        without: 'entries are shown as the log has them, whatever time was stamped on them',
        file: 'src/streams/log/memory-log.ts',
        find: 'for (const { entry } of this.#entries.slice(from, from + entries)) {',
        replace:
          'for (const { entry } of this.#entries.slice(from, from + entries).sort((a, b) => a.entry.acceptedAtMs - b.entry.acceptedAtMs)) {',
        noticed: [{ file: wallClocks, name: lateReply }],
      },
      {
        without: 'final places follow the log, whatever time was stamped on the messages',
        file: 'src/streams/server/room-order.ts',
        find: 'const entries = await next(held.at)',
        replace: 'const entries = [...(await next(held.at))].sort((a, b) => a.acceptedAtMs - b.acceptedAtMs)',
        noticed: [{ file: wallClocks, name: lateReply }],
      },
    ],
  },
]

import type { Row } from './row.ts'

const clocks = 'src/streams/parts/clocks.test.ts'
const copies = 'src/streams/parts/dedup.test.ts'
const replies = 'src/streams/server/reply.test.ts'
const fullDedup = 'src/streams/parts/dedup-full.test.ts'
const order = 'src/streams/server/order.test.ts'
const intake = 'src/streams/client/intake.test.ts'
const client = 'src/streams/server/client.test.ts'
const logs = 'test/contract/streams/logs.test.ts'
const chat = 'test/contract/service/chat.test.ts'
const wallClocks = 'src/streams/server/wall-clocks.test.ts'
const lateReply = 'a reply from a region whose clock is an hour behind stands after its question'
const hundred = {
  file: 'test/proof/streams/hundred.test.ts',
  name: 'a hundred clients in five regions, partitions, half a minute offline, a slow link, concurrent replies: all see all',
}

/** Deduplication and order of messages. */
export const ordering: readonly Row[] = [
  {
    id: 'O1',
    promise:
      'A sender numbers its messages, keeps them until they are acknowledged, and sends them again after a reconnect',
    removals: [
      {
        without: 'a message is kept durably before it leaves',
        file: 'src/streams/parts/sender.ts',
        find: 'await this.#place?.save(pending)',
        replace: '',
        noticed: [{ file: copies, name: 'a number whose write failed is the next one’s' }],
      },
      {
        without: 'an acknowledged message is not pending any more',
        file: 'src/streams/parts/sender.ts',
        find: 'this.#pending.delete(number)',
        replace: '',
        noticed: [{ file: copies, name: 'a sender resends what is pending, with the same numbers, within its window' }],
      },
      {
        without: 'everything pending leaves again after a reconnect',
        file: 'src/streams/parts/sender.ts',
        find: '  reconnected(): void {\n    this.#sentBelow = this.#firstPending()',
        replace: '  reconnected(): void {',
        noticed: [{ file: copies, name: 'a sender resends what is pending, with the same numbers, within its window' }],
      },
    ],
  },
  {
    id: 'O2',
    promise:
      'A receiver remembers results by key for 5 minutes, within a bound; copies get the first result, and copies at once run once',
    removals: [
      {
        without: 'a result is remembered for 5 minutes',
        file: 'src/streams/parts/dedup.ts',
        find: 'const TTL_MS = 5 * MINUTE',
        replace: 'const TTL_MS = 4 * MINUTE',
        noticed: [{ file: copies, name: 'copies get the first result until it expires' }],
      },
      {
        without: 'a key is known while its effect runs',
        file: 'src/streams/parts/dedup.ts',
        find: 'this.#running.set(key, { result: promise, fingerprint })',
        replace: '',
        noticed: [{ file: copies, name: 'copies at the same time share one run' }],
      },
      {
        without: 'expired keys are removed as others arrive',
        file: 'src/streams/parts/dedup.ts',
        find: 'this.#sweep(nowMs)\n',
        replace: '\n',
        noticed: [{ file: copies, name: 'what is remembered stays within its bound, and clean-up keeps up by itself' }],
      },
      {
        without: 'a key is refused when there are too many',
        file: 'src/streams/parts/dedup.ts',
        find: 'if (this.size >= this.#mostKeys) this.#makeRoom(nowMs)',
        replace: '',
        noticed: [
          { file: copies, name: 'what is remembered stays within its bound, and clean-up keeps up by itself' },
          {
            file: fullDedup,
            name: 'a key is never forgotten before its time: with too many of them a new one is refused',
          },
        ],
      },
    ],
  },
  {
    id: 'O3',
    promise: 'Numbered messages are delivered in order: early ones wait, old ones are dropped',
    removals: [
      {
        without: 'a message waits for those before it',
        file: 'src/streams/parts/sequenced.ts',
        find: 'if (number > this.#expected) return this.#keep(number, message)',
        replace: '',
        noticed: [{ file: order, name: 'a sequenced stream delivers in order, once, whatever comes how often' }],
      },
      {
        without: 'an early message is kept',
        file: 'src/streams/parts/sequenced.ts',
        find: 'this.#waiting.set(number, message)',
        replace: '',
        noticed: [{ file: order, name: 'a sequenced stream delivers in order, once, whatever comes how often' }],
      },
      {
        without: 'a message that was delivered is dropped',
        file: 'src/streams/parts/sequenced.ts',
        find: 'if (number < this.#expected || ',
        replace: 'if (',
        noticed: [{ file: order, name: 'a sequenced stream delivers in order, once, whatever comes how often' }],
      },
      {
        without: 'a copy of a message that waits is dropped',
        file: 'src/streams/parts/sequenced.ts',
        find: ' || this.#waiting.has(number)) return',
        replace: ') return',
        noticed: [{ file: order, name: 'a sequenced stream names its gap, and refuses when it is full' }],
      },
    ],
  },
  {
    id: 'O4',
    promise: 'A Lamport clock at 5 that receives 8 goes to 9',
    removals: [
      {
        without: 'a clock takes over the larger time',
        file: 'src/streams/parts/lamport.ts',
        find: "Math.max(this.#time, safeCount('time', time)) + 1",
        replace: 'this.#time + 1',
        noticed: [{ file: clocks, name: 'Lamport: a node at 5 that receives 8 goes to 9' }],
      },
      {
        without: 'receiving is an event of its own',
        file: 'src/streams/parts/lamport.ts',
        find: "Math.max(this.#time, safeCount('time', time)) + 1",
        replace: "Math.max(this.#time, safeCount('time', time))",
        noticed: [{ file: clocks, name: 'Lamport: a node at 5 that receives 8 goes to 9' }],
      },
    ],
  },
  {
    id: 'O5',
    promise: 'Vector clocks say before, after, concurrent and equal',
    removals: [
      {
        without: 'equal counts are equal',
        file: 'src/streams/parts/vector.ts',
        find: 'if (mine < theirs) less = true',
        replace: 'if (mine <= theirs) less = true',
        noticed: [{ file: clocks, name: 'vector clocks compare as the textbook says' }],
      },
      {
        without: 'a larger count means after, and both mean concurrent',
        file: 'src/streams/parts/vector.ts',
        find: 'else if (mine > theirs) more = true',
        replace: '',
        noticed: [{ file: clocks, name: 'vector clocks compare as the textbook says' }],
      },
      {
        without: 'a node that only the other clock knows counts 0 here',
        file: 'src/streams/parts/vector.ts',
        find: 'if (!less) for (const node in b)',
        replace: 'if (false) for (const node in b)',
        noticed: [{ file: clocks, name: 'both forms compare by the definition, and turned round the other way' }],
      },
      {
        without: 'a clock that receives keeps its larger counts',
        file: 'src/streams/parts/vector.ts',
        find: 'if (count > this.count(node)) this',
        replace: 'this',
        noticed: [{ file: 'src/streams/parts/vector.test.ts', name: 'a message that knew less takes nothing back' }],
      },
    ],
  },
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
        find: 'await this.#place.advance(position)\n        await effect()',
        replace: 'await effect()\n        await this.#place.advance(position)',
        noticed: [
          { file: copies, name: 'the modes differ in what a crash does' },
          { file: client, name: 'a restart in the middle of an effect' },
        ],
      },
      {
        without: 'at least once means the effect first',
        file: 'src/streams/parts/delivery.ts',
        find: 'await effect()\n        await this.#place.advance(position)',
        replace: 'await this.#place.advance(position)\n        await effect()',
        noticed: [
          { file: copies, name: 'the modes differ in what a crash does' },
          { file: client, name: 'a restart in the middle of an effect' },
        ],
      },
      {
        without: 'effectively once means that the key and the effect are kept together',
        file: 'src/streams/parts/delivery.ts',
        find: 'return this.#place.settle(key, position, effect)',
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
        find: 'if (delayMs === 0 && up.empty) inner.received(text)',
        replace: 'if (true) inner.received(text)',
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

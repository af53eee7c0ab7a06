import type { Row } from './row.ts'

const clocks = 'src/streams/parts/clocks.test.ts'
const copies = 'src/streams/parts/dedup.test.ts'
const fullDedup = 'src/streams/parts/dedup-full.test.ts'
const order = 'src/streams/server/order.test.ts'

/** Deduplication and order: the parts that clients, regions and users build with. */
export const orderingParts: readonly Row[] = [
  {
    id: 'O1',
    promise:
      'A sender numbers its messages, keeps them until they are acknowledged, and sends them again after a reconnect',
    removals: [
      {
        without: 'a message is kept durably before it leaves',
        file: 'src/streams/parts/sender.ts',
        find: 'await this.#storage?.save(pending)',
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
]

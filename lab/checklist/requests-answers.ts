import type { Row } from './row.ts'

const rules = 'test/contract/ledger/transition/rules.test.ts'
const replay = 'test/contract/ledger/replay.test.ts'
const operators = 'test/contract/ledger/operators.test.ts'
const http = 'test/contract/http/fetch.test.ts'
const regions = 'test/contract/http/region/adapters.test.ts'

/** Request deduplication: what a retry is answered, how long, and where. */
export const answersToRequests: readonly Row[] = [
  {
    id: 'R6',
    promise: 'A retry gets the whole response, one rebuilt from its resource, or the bare outcome',
    removals: [
      {
        without: 'a replay has the bytes of the first answer',
        file: 'src/http/protocol/record.ts',
        find: "if (rules.keep === 'response') {",
        replace: 'if (false) {',
        noticed: [{ file: http, name: 'replay: one MiB is kept' }],
      },
      {
        without: 'a resource is rebuilt with the rights of now',
        file: 'src/http/protocol/replay.ts',
        find: 'if (rebuilds && route.rebuild !== undefined) return rebuilt',
        replace: 'if (false) return rebuilt',
        noticed: [{ file: http, name: 'keep: a pointer rebuilds the answer with the rights of now' }],
      },
      {
        without: 'a bare outcome keeps status and location, and nothing else',
        file: 'src/http/protocol/record.ts',
        find: "if (rules.keep === 'outcome') return",
        replace: 'if (false) return',
        noticed: [{ file: http, name: 'keep: the outcome alone replays its status and location' }],
      },
      {
        without: 'a duplicate that waited gets no more than the record keeps',
        file: 'src/ledger/present.ts',
        find: "if (definition.keep === 'outcome') return undefined",
        replace: '',
        noticed: [
          {
            file: 'test/contract/ledger/joined-outcome.test.ts',
            name: 'a duplicate that waited gets no more than the record keeps',
          },
        ],
      },
    ],
  },
  {
    id: 'R7',
    promise: 'While the first attempt runs: 409 with `Retry-After`, 202 with `Location`, or a bounded wait',
    removals: [
      {
        without: 'a refusal says when to come back',
        file: 'src/http/protocol/problem-writer.ts',
        find: '            ...location,\n            retryAfterMs,',
        replace: '            ...location,',
        noticed: [
          { file: http, name: 'answers: a twin that waited long enough gets "still running"' },
          { file: http, name: 'answers: conflict is answered at once' },
        ],
      },
      {
        without: 'a route may answer 202 with the place of the status',
        file: 'src/http/protocol/problem-writer.ts',
        find: "const accept = whileRunning === 'accept' && id !== null",
        replace: 'const accept = false',
        noticed: [{ file: http, name: 'answers: accept answers with the place of the status' }],
      },
      {
        without: 'a duplicate waits for the response',
        file: 'src/ledger/lead.ts',
        find: 'if (!lead.request.wait) return',
        replace: 'if (lead.waited === false) return',
        noticed: [
          { file: replay, name: 'the policies while a duplicate runs: conflict at once, wait and then conflict' },
        ],
      },
      {
        without: 'a wait has an end',
        file: 'src/ledger/lead.ts',
        find: 'context.runtime.monotonicMs() + waitMs)',
        replace: 'context.runtime.monotonicMs() + waitMs + 3_600_000)',
        noticed: [
          { file: replay, name: 'the policies while a duplicate runs: conflict at once, wait and then conflict' },
        ],
      },
    ],
  },
  {
    id: 'R8',
    promise: 'Every operation has its retention and its expiry policy; business uniqueness is permanent beside it',
    removals: [
      {
        without: 'a record is kept as long as its operation says',
        file: 'src/ledger/core/transition-parts.ts',
        find: 'Math.max(now, from + policy.retainMs)',
        replace: 'Math.max(now, from + 2 * policy.retainMs)',
        noticed: [{ file: replay, name: 'after expiry a key is new, or refused for a while, and effect keys are new' }],
      },
      {
        without: 'an expired key may be refused for a while',
        file: 'src/ledger/core/transition-parts.ts',
        find: 'goneAt: expiresAt + policy.refuseMs',
        replace: 'goneAt: expiresAt',
        noticed: [{ file: replay, name: 'after expiry a key is new, or refused for a while, and effect keys are new' }],
      },
      {
        without: 'a record past its end does not exist',
        file: 'src/ledger/core/transition.ts',
        find: "stored !== null && 'goneAt' in stored && stored.goneAt <= at.now ? null : stored",
        replace: 'stored',
        noticed: [{ file: rules, name: 'a replay gives the recorded outcome until it expires' }],
      },
      {
        without: 'a business value belongs to its first owner',
        file: 'src/ledger/core/transition-operator.ts',
        find: "kind: 'unique_taken', owner,",
        replace: "kind: 'unique_claimed', owner,",
        noticed: [
          { file: operators, name: 'a unique claim is permanent, outlives retention, and belongs to the tenant' },
        ],
      },
      {
        without: 'a claim on a business value never expires',
        file: 'src/ledger/core/transition-operator.ts',
        find: '    goneAt: FOREVER,',
        replace: '    goneAt: at.now + 1_000,',
        noticed: [
          { file: operators, name: 'a unique claim is permanent, outlives retention, and belongs to the tenant' },
        ],
      },
    ],
  },
  {
    id: 'R9',
    promise: 'A key has one home region, which alone accepts it; when that is away the key is refused',
    removals: [
      {
        without: 'a request is sent to the home of its key',
        file: 'src/http/protocol/elsewhere.ts',
        find: 'const home = region.homeOf(id)\n  const former',
        replace: 'const home = region.self\n  const former',
        noticed: [
          {
            file: regions,
            name: 'an adapter sends a request on to the home of its key, with its own caller, and gives the answer back',
          },
        ],
      },
      {
        without: 'nothing runs elsewhere while the home is away',
        file: 'src/http/protocol/elsewhere.ts',
        find: "if (from === null) return { kind: 'answer', answer: await forwarded(region, coming, home, problems) }",
        replace: `if (from === null) {
    const answer = await forwarded(region, coming, home, problems)
    return answer.status === 503 ? HERE : { kind: 'answer', answer }
  }`,
        noticed: [
          {
            file: 'test/contract/http/region/away.test.ts',
            name: 'where the home of a key is away it is refused, and nothing runs elsewhere; other keys are not touched',
          },
        ],
      },
      {
        without: 'a request that was sent on once is not sent on again',
        file: 'src/http/protocol/elsewhere.ts',
        find: 'if (from === null) return {',
        replace: 'if (from !== undefined) return {',
        noticed: [
          { file: regions, name: 'regions that do not agree about a home refuse, instead of sending in circles' },
        ],
      },
      {
        without: 'the word of a region is signed',
        file: 'src/http/region/token.ts',
        find: ' || !timingSafeEqual(actual, expected)) return null',
        replace: ') return null',
        noticed: [
          {
            file: 'src/http/region/token.test.ts',
            name: 'a token has its caller, and only what its region has signed',
          },
        ],
      },
    ],
  },
]

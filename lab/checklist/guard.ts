import type { Row } from './row.ts'

const guardTests = 'test/contract/service/messages-guard.test.ts'
const messageTests = 'test/contract/service/messages.test.ts'

/** The atomic duplicate guard of `POST /api/messages`. */
export const guard: readonly Row[] = [
  {
    id: 'G1',
    promise: 'Two identical requests 0–350 ms apart send once, on one process and on several',
    removals: [
      {
        without: 'the lock on the content is asked before a send',
        file: 'service/messages/send.ts',
        find: "if (config.guard === 'off') return",
        replace: 'if (true) return',
        noticed: [
          {
            file: guardTests,
            name: 'twenty pairs of identical requests, 0 to 350 ms apart, are twenty mails (G1, G3)',
          },
          { file: guardTests, name: 'twenty identical requests at once on two processes are one mail' },
        ],
      },
    ],
  },
  {
    id: 'G2',
    promise: 'An identical request within 15 minutes gets the original; after the window it sends',
    removals: [
      {
        without: 'the window is 15 minutes long',
        file: 'service/messages/send.ts',
        find: 'export const WINDOW_MS = 15 * MINUTE',
        replace: 'export const WINDOW_MS = 13 * MINUTE',
        noticed: [
          {
            file: guardTests,
            name: 'within the window the original comes back, with its age; a duplicate does not extend it (G2, G7)',
          },
        ],
      },
      {
        without: 'the window runs from the first request',
        file: 'src/ledger/guard/content-key.ts',
        find: "    retainFrom: 'claimed',\n",
        replace: '    retainMs: 2 * withinMs,\n',
        noticed: [
          {
            file: guardTests,
            name: 'within the window the original comes back, with its age; a duplicate does not extend it (G2, G7)',
          },
        ],
      },
    ],
  },
  {
    id: 'G3',
    promise: 'It works without any header, and no caller changes',
    removals: [
      {
        without: 'a request without a key is taken',
        file: 'src/http/protocol/read.ts',
        find: "if (key.problem === 'missing' && ",
        replace: 'if (false && ',
        noticed: [
          {
            file: messageTests,
            name: 'a new lead is 201, a known one 200, and both answers carry the ids of the CRM (G7, G14)',
          },
        ],
      },
    ],
  },
  {
    id: 'G4',
    promise:
      'A key comes first and replays for 24 h; other keys and no key meet the guard; a pending answer is never kept',
    removals: [
      {
        without: 'the answer under a key is kept for a day',
        file: 'service/messages/routes.ts',
        find: 'const KEY_MS = 24 * HOUR',
        replace: 'const KEY_MS = 12 * HOUR',
        noticed: [
          {
            file: guardTests,
            name: 'a key comes first: replayed for a day; other keys and no key meet the guard (G4)',
          },
        ],
      },
      {
        without: 'a pending answer gives its key back',
        file: 'service/messages/routes.ts',
        find: "if (sent.kind === 'pending') context?.notDone()",
        replace: '',
        noticed: [
          {
            file: guardTests,
            name: 'an original in flight is waited for, 3 s, then refused without an answer that lasts (G4, G8, G13)',
          },
        ],
      },
    ],
  },
  {
    id: 'G5',
    promise: 'Another lead, character or workspace is another message; two leads with one phone are one human',
    removals: [
      {
        without: 'the recipient is part of the content',
        file: 'service/messages/send.ts',
        find: '=> [workspaceId, phone, email, body],',
        replace: '=> [workspaceId, null, null, body],',
        noticed: [{ file: messageTests, name: 'one template to a hundred leads is a hundred sends' }],
      },
      {
        without: 'the text is compared as it is',
        file: 'service/messages/send.ts',
        find: '=> [workspaceId, phone, email, body],',
        replace: '=> [workspaceId, phone, email, body.trim().toLowerCase()],',
        noticed: [{ file: messageTests, name: 'one more space is another message' }],
      },
      {
        without: 'the workspace is part of the content',
        file: 'service/messages/send.ts',
        find: '=> [workspaceId, phone, email, body],',
        replace: "=> ['*', phone, email, body],",
        noticed: [{ file: messageTests, name: 'another workspace is another message' }],
      },
    ],
  },
  {
    id: 'G6',
    promise: 'A request that fails authentication or validation holds no lock',
    removals: [
      {
        without: 'a refused request gives its key back',
        file: 'service/messages/routes.ts',
        find: "if (sent.kind === 'refused') {\n        context?.notDone()",
        replace: "if (sent.kind === 'refused') {",
        noticed: [
          {
            file: 'test/contract/service/messages-input.test.ts',
            name: 'a request that was refused holds no lock and no key (G6)',
          },
        ],
      },
    ],
  },
  {
    id: 'G7',
    promise: 'Three shapes of answer with their codes, the age in seconds in the text',
    removals: [
      {
        without: 'the response has the age of the original',
        file: 'service/messages/routes.ts',
        find: 'secondsOf(sent.ageMs))',
        replace: '0)',
        noticed: [
          {
            file: guardTests,
            name: 'within the window the original comes back, with its age; a duplicate does not extend it (G2, G7)',
          },
        ],
      },
      {
        without: 'the response distinguishes a duplicate from a send',
        file: 'service/messages/answers.ts',
        find: 'const found = { success: true, duplicateOnly: true,',
        replace: 'const found = { success: true,',
        noticed: [
          {
            file: guardTests,
            name: 'within the window the original comes back, with its age; a duplicate does not extend it (G2, G7)',
          },
        ],
      },
      {
        without: 'a duplicate of a send in flight is reported as pending',
        file: 'service/messages/answers.ts',
        find: 'duplicateMessage: STILL_PROCESSED,',
        replace: "duplicateMessage: '',",
        noticed: [
          {
            file: guardTests,
            name: 'an original in flight is waited for, 3 s, then refused without an answer that lasts (G4, G8, G13)',
          },
        ],
      },
      {
        without: 'a new lead is answered with 201',
        file: 'service/messages/answers.ts',
        find: 'row.new_lead === 1 ? 201 : 200',
        replace: '200',
        noticed: [
          {
            file: messageTests,
            name: 'a new lead is 201, a known one 200, and both answers carry the ids of the CRM (G7, G14)',
          },
        ],
      },
    ],
  },
  {
    id: 'G8',
    promise: 'The loser waits up to 3 s for an original in flight, then answers without one; a later retry gets it',
    removals: [
      {
        without: 'an original in flight is waited for',
        file: 'service/messages/send.ts',
        find: 'const WAIT_MS = 3 * SECOND',
        replace: 'const WAIT_MS = 1',
        noticed: [
          {
            file: guardTests,
            name: 'an original in flight is waited for, 3 s, then refused without an answer that lasts (G4, G8, G13)',
          },
        ],
      },
    ],
  },
  {
    id: 'G9',
    promise: 'The lock is released when a send fails before its message exists; the message id is attached to it',
    removals: [
      {
        without: 'a send that threw gives its lock back',
        file: 'src/ledger/guard/guard.ts',
        find: 'return lease.release(INSIST)',
        replace: 'return undefined',
        noticed: [
          { file: guardTests, name: 'a send that fails before its message exists frees the lock and the key (G9)' },
        ],
      },
      {
        without: 'the message is attached to the lock',
        file: 'service/messages/send.ts',
        find: 'attach(lock, pointer), attach(key, pointer)',
        replace: 'null, attach(key, pointer)',
        noticed: [
          { file: guardTests, name: 'a send that fails before its message exists frees the lock and the key (G9)' },
        ],
      },
    ],
  },
  {
    id: 'G10',
    promise: 'A store error on the lock is reported, and the send proceeds unguarded',
    removals: [
      {
        without: 'a guard whose store fails lets the message go',
        file: 'src/ledger/guard/guard.ts',
        find: "if (options.onStoreDown === 'closed') ",
        replace: '',
        noticed: [
          {
            file: guardTests,
            name: 'a lock that cannot be asked is reported, and the message goes out unguarded (G10, G13)',
          },
        ],
      },
    ],
  },
  {
    id: 'G11',
    promise: 'A failed original is returned within the window; an operator can release the lock by its hash',
    removals: [
      {
        without: 'a failed original keeps its lock',
        file: 'src/ledger/guard/guard.ts',
        find: "if (!hasFailed || options.onFailed !== 'allow') return",
        replace: 'if (!hasFailed) return',
        noticed: [
          {
            file: 'test/contract/guard/doubt.test.ts',
            name: 'a failed original counts like any other, unless its content may be sent again',
          },
        ],
      },
      {
        without: 'a release forgets the lock',
        file: 'src/ledger/guard/guard.ts',
        find: 'await ledger.forget({ tenant, caller: ANY_CALLER, operation: lock.name, key }, by',
        replace: 'if (false) await ledger.forget({ tenant, caller: ANY_CALLER, operation: lock.name, key }, by',
        noticed: [
          {
            file: guardTests,
            name: 'a failed original comes back within its window, until an operator frees the lock (G11)',
          },
        ],
      },
    ],
  },
  {
    id: 'G12',
    promise: 'Expired locks are cleaned up by themselves; a crashed process leaves none beyond the window',
    removals: [
      {
        without: 'a lock whose holder died before the original existed is free',
        file: 'src/ledger/guard/content-key.ts',
        find: "onAbandoned: 'hold_attached',",
        replace: "onAbandoned: 'hold',",
        noticed: [
          {
            file: guardTests,
            name: 'a process that dies with a lock leaves it for its lease only, and nothing beyond the window (G12)',
          },
        ],
      },
      {
        without: 'expired locks are removed by themselves',
        file: 'src/ledger/ledger.ts',
        find: 'const sweeper = createSweeper(context)',
        replace: 'const sweeper = { step: async () => ({ more: false, waitedMs: 0 }), round: async () => 0 }',
        noticed: [{ file: 'src/ledger/background.test.ts', name: 'by itself: what is past its end is removed' }],
      },
    ],
  },
  {
    id: 'G13',
    promise: 'Three events for operators, with their mode',
    removals: [
      {
        without: 'a block says whether it waited',
        file: 'src/ledger/guard/guard.ts',
        find: "const mode = waited ? 'lock_resolved_polled' : 'lock_resolved'",
        replace: "const mode = waited ? 'lock_resolved' : 'lock_resolved'",
        noticed: [
          { file: guardTests, name: 'an original that appears while its duplicate waits is found at once (G8, G13)' },
        ],
      },
      {
        without: 'a pending duplicate is reported',
        file: 'src/ledger/guard/guard.ts',
        find: "report({ kind: 'pending', ageMs })",
        replace: '',
        noticed: [
          {
            file: guardTests,
            name: 'an original in flight is waited for, 3 s, then refused without an answer that lasts (G4, G8, G13)',
          },
        ],
      },
      {
        without: 'an error of the guard is reported',
        file: 'src/ledger/guard/guard.ts',
        find: "if (!isStoreFault(error)) throw error\n        report({ kind: 'error', error })",
        replace: 'if (!isStoreFault(error)) throw error',
        noticed: [
          {
            file: guardTests,
            name: 'a lock that cannot be asked is reported, and the message goes out unguarded (G10, G13)',
          },
        ],
      },
    ],
  },
  {
    id: 'G14',
    promise: 'One lead per phone and workspace, one conversation per phone, ids of the CRM in every answer',
    removals: [
      {
        without: 'a phone is unique among leads',
        file: 'service/messages/schema.ts',
        find: '    unique (workspace_id, phone),\n    unique (workspace_id, email)',
        replace: '    unique (workspace_id, email)',
        noticed: [
          { file: messageTests, name: 'one lead and one conversation for a phone, however many ask at once (G14)' },
        ],
      },
      {
        without: 'a phone has one conversation',
        file: 'service/messages/leads.ts',
        find: "'select id from conversations where workspace_id = ? and phone = ?'",
        replace: "'select id from conversations where workspace_id = ? and phone = ? and 1 = 0'",
        noticed: [
          { file: messageTests, name: 'one lead and one conversation for a phone, however many ask at once (G14)' },
        ],
      },
      {
        without: 'answers carry the ids of the CRM',
        file: 'service/messages/answers.ts',
        find: '...(lead === null ? noCrmIds : crmIdsOf(lead))',
        replace: '...(lead === null ? noCrmIds : noCrmIds)',
        noticed: [
          {
            file: messageTests,
            name: 'a new lead is 201, a known one 200, and both answers carry the ids of the CRM (G7, G14)',
          },
        ],
      },
    ],
  },
]

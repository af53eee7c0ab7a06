import { sha256Hex } from '../../ledger/core/digest.ts'
import { HOUR, limits } from '../../ledger/core/limits.ts'
import type { EncryptionStatus, StoreEncryption } from '../../ledger/store/encryption/status.ts'
import { type ErasedOwner, nothingLeft } from '../core/erase.ts'
import { HISTORY_MS } from '../core/history.ts'
import { flag, oneOf, optional, text, type Values } from './argument.ts'
import { act, type Context, given, type RetentionRow, read } from './command.ts'
import { badArgument, CommandRefused } from './refusal.ts'

const CALL = { timeoutMs: limits.storeCallMs }
/** Rows of one step: short transactions, so that a server beside it is not held up. */
const STEP_ROWS = 200

function encryptionOf({ admin }: Context): StoreEncryption {
  if (admin.encryption !== null) return admin.encryption
  throw new CommandRefused('not_available', `The ${admin.store} store has no keys: set ONCEONLY_ENCRYPTION_KEYS.`)
}

function removable({ keys, writers }: EncryptionStatus): readonly string[] {
  return keys.filter((id) => !writers.includes(id))
}

/** Without a server there are records alone. */
const nothingOwn = { counts: {}, left: nothingLeft }

const eraseArguments = {
  what: oneOf('whose data: `workspace` is a whole tenant, `person` a caller or what records mention', [
    'workspace',
    'person',
  ]),
  id: text('the tenant, or the person: a caller, a key, a phone number, an e-mail address'),
  tenant: optional(text('of a person: only in this tenant')),
  recordsOnly: flag('only the records, although a program keeps more in the same store'),
}

/** Here nothing is known of what a program keeps beside the records: to erase half of it must not look like all of it. */
async function refuseHalf({ admin, own }: Context, { recordsOnly }: Values<typeof eraseArguments>): Promise<void> {
  if (own !== undefined || recordsOnly) return
  const tables = await admin.erasing.programTables()
  if (tables.length === 0) return
  throw new CommandRefused(
    'not_available',
    `A program keeps more in this store than records (${tables.join(', ')}), which this command cannot erase. Run it where ` +
      "that is known: on the page Data of the server's console, or by `POST /api/console/actions` with " +
      '`{"action":"erase", …}`. `--records-only` erases the records alone. Nothing was erased.',
  )
}

/**
 * Names a person in the audit, where nothing is ever changed. Who has the phone number can check that it was erased;
 * the digest is so short that thousands of numbers have it, so that it cannot be found by trying them all.
 */
const DIGEST_CHARS = 5

function inAudit(what: string, id: string): Readonly<Record<string, string>> {
  return what === 'person' ? { digest: sha256Hex(id).slice(0, DIGEST_CHARS) } : { id }
}

function ownerOf({ what, id, tenant }: Values<typeof eraseArguments>): ErasedOwner {
  if (what === 'person') return { kind: 'person', person: id, ...(tenant === undefined ? {} : { tenant }) }
  if (tenant !== undefined) throw badArgument('tenant', 'belongs to `person`: a workspace is named by its id')
  return { kind: 'workspace', tenant: id }
}

async function rekeyAll(context: Context): Promise<{ changed: number; left: number }> {
  const encryption = encryptionOf(context)
  const states = await context.admin.records({}, { limit: 1 }).then(() => context.admin.status())
  const total = Object.values(states.states).reduce((sum, n) => sum + n, 0)
  let [looked, changed, left] = [0, 0, 0]
  for (let cursor: string | null = null; ; ) {
    const step = await encryption.rekey(cursor, STEP_ROWS, CALL)
    looked += step.looked
    changed += step.changed
    left += step.left
    // Tables have no count that is cheap: the bar is nearly full while they are gone through.
    context.progress(step.at === 'records' && total > 0 ? Math.min(0.9, (looked / total) * 0.9) : 0.95)
    cursor = step.cursor
    if (cursor === null) return { changed, left }
  }
}

/** Encryption, erasing and retention of what is stored. */
export const privacyCommands = {
  encryption: read({
    summary: 'which keys encrypt the store, and which can be removed',
    arguments: {},
    path: '/encryption',
    async read(context) {
      const { encryption } = context.admin
      if (encryption === null) return { encrypted: false as const }
      const status = await encryption.status(CALL)
      return { encrypted: true as const, ...status, removable: removable(status) }
    },
  }),
  rekey: act({
    summary: 'encrypt everything again with the writing key',
    details:
      'Also encrypts what was stored before encryption, with ONCEONLY_ENCRYPTION_ALLOW_PLAIN=yes. Safe beside running servers\nthat have the same keys; stopped in the middle it continues when it is run again.',
    arguments: {},
    isLocal: true,
    async find(context) {
      const status = await encryptionOf(context).status(CALL)
      const programs = await context.admin.erasing.programTables()
      const unknown = status.undeclared.filter((room) => programs.includes(room))
      if (unknown.length > 0) {
        throw new CommandRefused(
          'not_available',
          `A program keeps tables of its own in this store (${unknown.join(', ')}), and has not run with keys yet: which of their ` +
            'columns to encrypt is not known. Start it with these keys and ONCEONLY_ENCRYPTION_ALLOW_PLAIN=yes, then run this ' +
            'again. Nothing was done.',
        )
      }
      return status
    },
    forViewer: (status) => status,
    target: (_args, { writeWith }) => ({ writeWith }),
    question: (_args, { writeWith }) => `Encrypt everything in the store with the key \`${writeWith}\`?`,
    async act(context) {
      const encryption = encryptionOf(context)
      await context.admin.declare()
      let [done, last] = [0, await rekeyAll(context)]
      done += last.changed
      // What was written while it ran, with the old key, is found by another look.
      if (last.changed > 0) {
        last = await rekeyAll(context)
        done += last.changed
      }
      const finished = last.left === 0 && (await encryption.finish(CALL))
      context.progress(1)
      const status = await encryption.status(CALL)
      return { changed: done, left: last.left, finished, removable: removable(status), plain: status.plain }
    },
  }),
  erase: act({
    summary: "remove a workspace's or a person's data",
    details:
      'Responses, pointers and notes of records go; their keys stay taken until their window ends, so that no command runs again.\nOn the console of a server it also removes API keys, messages, leads, runs, imports, chat rooms. `--preview` shows how much there is.',
    arguments: eraseArguments,
    words: ['what', 'id'],
    async find(context, args) {
      const { admin, own } = context
      const owner = ownerOf(args)
      await refuseHalf(context, args)
      const { counts, left } = own === undefined ? nothingOwn : await own.count(owner)
      return { owner, ...(await admin.erasing.count(owner)), own: counts, left }
    },
    forViewer: (found) => found,
    target: ({ what, id, tenant }) => ({ what, ...inAudit(what, id), ...given({ tenant }) }),
    question: ({ what, id }, { records, own, left }) => {
      const others = Object.entries(own).map(([name, n]) => `, ${n} ${name}`)
      const rest = left.count === 0 ? '' : ` ${left.count} are under way or unknown, and are left.`
      return `Erase the ${what} ${id} for good: ${records} records${others.join('')}?${rest}`
    },
    async act({ admin, own, progress }, args) {
      const owner = ownerOf(args)
      const step = () => progress()
      const { counts, left } = own === undefined ? nothingOwn : await own.erase(owner, step)
      return { ...(await admin.erasing.erase(owner, step)), own: counts, left }
    },
  }),
  retention: read({
    summary: 'how long what is stored is kept, and what changes that',
    arguments: {},
    path: '/retention',
    async read({ admin, retention }) {
      // A command line does not know the settings of servers: the last one that started wrote them down.
      const own = retention?.() ?? (await admin.kept.read())
      const named = new Set(own.map(({ what }) => what))
      return { rows: [...libraryRetention.filter(({ what }) => !named.has(what)), ...own] }
    },
  }),
}

const days = (ms: number) => `${ms / 86_400_000} days`

/** What the library keeps, beside what the operations say about their own records. */
const libraryRetention = [
  { what: 'records', kept: 'as their operation says, 7 days by default', setting: '`retainMs` of the operation' },
  { what: 'runs', kept: `${days(limits.runKeepMs)} after their end`, setting: null },
  {
    what: 'events to publish',
    kept: 'until they are; those that were given up, until an operator ends them',
    setting: null,
  },
  { what: 'dead letters of consumers', kept: 'until an operator ends them', setting: null },
  {
    what: 'sagas',
    kept: 'as their definition says, 7 days after their end by default',
    setting: '`keepMs` of the saga',
  },
  {
    what: 'rooms of streams',
    kept: 'as their region says, 10 and 20 minutes by default',
    setting: 'options of the region',
  },
  { what: 'sessions at the console', kept: '12 hours', setting: null },
  { what: 'counts of each minute', kept: `${HISTORY_MS / HOUR} hours`, setting: null },
  { what: 'audit of operators', kept: 'for good, unless a server removes it', setting: null },
] as const satisfies readonly RetentionRow[]

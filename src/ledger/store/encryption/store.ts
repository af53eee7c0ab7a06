import type { Awaitable } from '../../../runtime/runtime.ts'
import { isThenable } from '../../../runtime/runtime.ts'
import { notApplied } from '../../core/errors.ts'
import type { RecordId } from '../../core/identity.ts'
import { limits } from '../../core/limits.ts'
import type { LedgerRecord } from '../../core/record.ts'
import { goneAtOf } from '../../core/record.ts'
import type { DecisionOf, ReplaceRequest, Request } from '../../core/request.ts'
import { contradicts } from '../../core/transition.ts'
import type {
  AdoptedTransactions,
  AppliedDecision,
  Call,
  Claims,
  Session,
  Store,
  TransactionCall,
  Transactions,
} from '../port.ts'
import { withRestores } from '../restores.ts'
import type { SqlTx } from '../sql.ts'
import { refuseMarked, refuseMarkedIn } from './marker.ts'
import type { Opened } from './opened.ts'
import { createOpener } from './opened.ts'
import type { Encryption } from './options.ts'
import { checkEncryption } from './options.ts'
import { openedQueries, openedUpkeep } from './queries.ts'
import { createRekey } from './rekey.ts'
import { openedSeam, openedTx } from './seam.ts'

/**
 * The store with the option `encryption`: everything it keeps passes here, and nothing else of the package knows of it.
 * Without the option the store only refuses a place that is encrypted.
 */
export function withEncryption<S extends Store>(store: S, encryption: Encryption | undefined): S {
  const opened = encryption === undefined ? refusingMarked(store) : encrypted(store, encryption)
  return withRestores(opened, store)
}

const CALL = { timeoutMs: limits.storeCallMs }

/** Looks once, before the first call; from then on the calls are the store's own. */
function refusingMarked<S extends Store>(store: S): S {
  let looked = false
  let looking: Promise<void> | null = null

  function look(call: Call): Promise<void> {
    looking ??= refuseMarked(store, call).then(
      () => {
        looked = true
        own.apply = claims.apply
      },
      (error: unknown) => {
        looking = null
        throw notApplied(error)
      },
    )
    return looking
  }

  /** In the transaction that is open, which may hold the only connection; after the claim, whose error says more. */
  function lookingInside<Tx>(session: Session<Tx>): Session<Tx> {
    return {
      ...session,
      apply: async (request) => {
        const applied = await session.apply(request)
        if (!looked && session.sql !== undefined) await refuseMarkedIn(store, session.sql)
        looked = true
        return applied
      },
    }
  }

  const { claims, transactions, sql } = store
  const own: { -readonly [name in keyof Claims]: Claims[name] } = {
    ...claims,
    apply: (request, call) => look(call).then(() => claims.apply(request, call)),
  }
  return {
    ...store,
    claims: own,
    // What was asked for before it still counts.
    stop: async () => {
      await looking?.catch(() => undefined)
      await store.stop()
    },
    clock: {
      ...store.clock,
      now: async (call) => {
        if (!looked) await look(call)
        return store.clock.now(call)
      },
    },
    ...(transactions === undefined
      ? {}
      : {
          transactions: {
            run: (work, call) =>
              looked ? transactions.run(work, call) : look(call).then(() => transactions.run(work, call)),
          } satisfies Transactions<unknown>,
        }),
    ...withForeign(store, (adopted) => ({
      ...adopted,
      run: (work, call) => (looked ? adopted.run(work, call) : look(call).then(() => adopted.run(work, call))),
      within: (handle, work, call) =>
        adopted.within(handle, (session) => work(looked ? session : lookingInside(session)), call),
    })),
    ...(sql === undefined
      ? {}
      : {
          sql: {
            ...sql,
            migrate: async (room, migrations) => {
              if (!looked) await look(CALL)
              await sql.migrate(room, migrations)
            },
          } satisfies Store['sql'],
        }),
  }
}

type Apply = Claims['apply']

function encrypted<S extends Store>(store: S, given: Encryption): S {
  const encryption = checkEncryption(given)
  const opener = createOpener(store, encryption)
  const { claims, transactions, sql } = store

  /** The same object for the claim that travels with BEGIN and for its `apply`: the store compares them. */
  const sealed = new WeakMap<Request, Request>()

  function sealOnce({ codec }: Opened, request: Exclude<Request, ReplaceRequest>): Request {
    const known = sealed.get(request)
    if (known !== undefined) return known
    const made = codec.sealRequest(request)
    if (request.kind === 'claim') sealed.set(request, made)
    return made
  }

  function openApplied({ codec }: Opened, request: Request, applied: AppliedDecision): AppliedDecision {
    const { decision, now } = applied
    const record = applied.record === null ? null : codec.openRecord(applied.record)
    if (decision.kind === 'lease_lost' && decision.conflict && request.kind === 'settle' && record !== null) {
      // Equal outcomes are different bytes in another incarnation, or under another key.
      return { decision: { ...decision, conflict: contradicts(record, request) }, record, now }
    }
    return { decision: codec.openDecision(decision, record), record, now }
  }

  /** The incarnation that an operator's word is bound to; the word is dropped when the record has changed since. */
  async function applyRead(on: Opened, request: Request & { kind: 'resolve' | 'attach' }, call: Call, apply: Apply) {
    const { records } = await claims.read([on.codec.sealId(request.id)], call)
    const [record] = records
    const made = on.codec.sealRequest(request, record?.incarnation)
    return openApplied(on, request, await apply(made, call))
  }

  async function applyReplace(on: Opened, request: ReplaceRequest, call: Call, apply: Apply): Promise<AppliedDecision> {
    const id = on.codec.sealId(request.id)
    const { records, now } = await claims.read([id], call)
    const before = records[0] ?? null
    const opened = before === null ? null : on.codec.openRecord(before)
    if (JSON.stringify(opened) !== JSON.stringify(request.before)) {
      return { decision: { kind: 'changed' }, record: opened, now }
    }
    const made = { kind: 'replace', id, before, after: on.codec.sealRecord(request.after) } as const
    return openApplied(on, request, await apply(made, call))
  }

  function applySealed(on: Opened, request: Request, call: Call, apply: Apply): Awaitable<AppliedDecision> {
    if (request.kind === 'replace') return applyReplace(on, request, call, apply)
    const bound = request.kind === 'attach' ? request.incarnation === undefined : request.kind === 'resolve'
    if (bound) return applyRead(on, request as Request & { kind: 'resolve' | 'attach' }, call, apply)
    const applied = apply(sealOnce(on, request), call)
    return isThenable(applied)
      ? Promise.resolve(applied).then((each) => openApplied(on, request, each))
      : openApplied(on, request, applied as AppliedDecision)
  }

  async function readPlain(id: RecordId, call: Call): Promise<LedgerRecord | null> {
    const { records, now } = await claims.read([id], call)
    const record = records[0] ?? null
    const goneAt = record === null ? null : goneAtOf(record)
    return record === null || (goneAt !== null && goneAt <= now) ? null : record
  }

  /**
   * While records from before encryption are left, a command is decided where its record is. `rekey` writes the encrypted
   * record before it removes the plain one: a claim that finds neither where it looked has to look again.
   */
  async function applyMixed(on: Opened, request: Request, call: Call, apply: Apply): Promise<AppliedDecision> {
    const found = await readPlain(request.id, call)
    if (found === null) return applySealed(on, request, call, apply)
    const applied = await apply(request, call)
    const granted = applied.decision.kind === 'first_attempt' && request.kind === 'claim'
    if (!granted) return applied
    const { records } = await claims.read([on.codec.sealId(request.id)], call)
    if ((records[0] ?? null) === null) return applied
    // It was moved in between: nothing has begun under this claim, and the encrypted record decides.
    const { id, identity, claimId, fingerprints, policy } = request
    await apply({ kind: 'release', id, identity, claimId, fingerprint: fingerprints[0], policy }, call)
    return applySealed(on, request, call, apply)
  }

  function applyOn(on: Opened, request: Request, call: Call, apply: Apply): Awaitable<AppliedDecision> {
    return on.plain() ? applyMixed(on, request, call, apply) : applySealed(on, request, call, apply)
  }

  function sessionOf<Tx>(on: Opened, session: Session<Tx>, call: Call, isForeign: boolean): Session<Tx> {
    const { settleLast, part } = session
    const apply = ((request: Request) => session.apply(request)) as Apply
    return {
      ...session,
      tx: isForeign ? session.tx : (openedTx(on, session.tx) as Tx),
      ...(session.sql === undefined ? {} : { sql: openedTx(on, session.sql) as SqlTx }),
      apply: (async (request: Request) => applyOn(on, request, call, apply)) as Session<Tx>['apply'],
      settleLast:
        settleLast === undefined || on.plain()
          ? undefined
          : async (request) =>
              openApplied(on, request, await settleLast(sealOnce(on, request) as typeof request)) as never,
      ...(part === undefined
        ? {}
        : {
            part: <T>(work: (inner: Session<Tx>) => Promise<T>) =>
              part((inner) => work(sessionOf(on, inner, call, isForeign))),
          }),
    }
  }

  function callOf(on: Opened, call: TransactionCall): TransactionCall {
    const { claim, ...rest } = call
    const refuseTwinOf = call.refuseTwinOf === null ? null : on.codec.sealId(call.refuseTwinOf)
    if (claim === undefined || on.plain()) return { ...rest, refuseTwinOf }
    return { ...rest, refuseTwinOf, claim: sealOnce(on, claim) as typeof claim }
  }

  const withOpened = <T>(call: Call, work: (on: Opened) => Awaitable<T>): Awaitable<T> => {
    const on = opener.current()
    return on === null ? opener.open(call).then(work) : work(on)
  }

  const opened = {
    ...store,
    encryption: createRekey(store, opener),
    clock: {
      ...store.clock,
      now: async (call: Call) => {
        await opener.open(call)
        return store.clock.now(call)
      },
    },
    claims: {
      ...claims,
      apply: (<R extends Request>(request: R, call: Call) =>
        withOpened(call, (on) => applyOn(on, request, call, claims.apply)) as Awaitable<
          AppliedDecision<DecisionOf<R>>
        >) as Apply,
      read: async (ids, call) => {
        const on = await opener.open(call)
        const hidden = ids.map((id) => on.codec.sealId(id))
        const { now, records } = await claims.read(on.plain() ? [...hidden, ...ids] : hidden, call)
        const found = ids.map((_, index) => records[index] ?? records[index + ids.length] ?? null)
        return { now, records: found.map((record) => (record === null ? null : on.codec.openRecord(record))) }
      },
      watch: (wake) =>
        claims.watch((ids) => {
          const on = opener.current()
          if (ids === null || on === null) return wake(null)
          const shown = ids.map((id) => on.codec.openId(id))
          wake(on.plain() ? [...shown, ...ids] : shown)
        }),
    } satisfies Claims,
    queries: openedQueries(store.queries, opener),
    upkeep: openedUpkeep(store.upkeep, opener),
    ...(transactions === undefined
      ? {}
      : {
          transactions: {
            run: async (work, call) => {
              const on = await opener.open(call)
              return transactions.run((session) => work(sessionOf(on, session, call, false)), callOf(on, call))
            },
          } satisfies Transactions<unknown>,
        }),
    ...withForeign(store, (adopted) => ({
      run: async (work, call) => {
        const on = await opener.open(call)
        return adopted.run((session) => work(sessionOf(on, session, call, true)), callOf(on, call))
      },
      within: async (handle, work, call) => {
        const on = await opener.open(call)
        return adopted.within(handle, (session) => work(sessionOf(on, session, call, true)), callOf(on, call))
      },
      sqlOf: (handle) => {
        const on = opener.current()
        const tx = adopted.sqlOf(handle)
        return on === null ? tx : (openedTx(on, tx) as SqlTx)
      },
    })),
    ...(sql === undefined ? {} : { sql: openedSeam(store, sql, opener) }),
  }
  return opened
}

/** The store's transactions of ORMs with every call changed; none where it has none. */
function withForeign(
  { foreign }: Store,
  change: <Handle>(adopted: AdoptedTransactions<Handle>) => AdoptedTransactions<Handle>,
): Pick<Store, 'foreign'> {
  if (foreign === undefined) return {}
  return { foreign: { dialect: foreign.dialect, on: (orm) => change(foreign.on(orm)) } }
}

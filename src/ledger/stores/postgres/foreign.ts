import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { AppliedWord } from '../../core/errors.ts'
import { isOnceError, OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import type { DecisionOf, Request } from '../../core/request.ts'
import type { Deadline } from '../../store/deadline.ts'
import { inTime } from '../../store/deadline.ts'
import { lostTransaction, noTransaction, noteSql } from '../../store/foreign.ts'
import { inOrmPart, perHandle, sqlApart } from '../../store/foreign-tx.ts'
import type { OrmTransactions } from '../../store/orm.ts'
import type {
  AdoptedTransactions,
  AppliedDecision,
  ForeignTransactions,
  Session,
  TransactionCall,
} from '../../store/port.ts'
import { inPart } from '../../store/port.ts'
import { ended, runningTwin } from '../../store/sql/transactions.ts'
import { abortedError, errors, isAborted, isBusy, isReadOnly, isSessionOver, sqlErrorOf } from './errors.ts'
import { noTables, notBegun, readOnly, tablesToCome } from './foreign-errors.ts'
import { createSamePlace } from './foreign-place.ts'
import type { ForeignTx } from './foreign-tx.ts'
import { createForeignTx, isGone, saysConnectionLost, serverErrorIn } from './foreign-tx.ts'
import { MARK } from './mark.ts'
import { findOwnTables, recordLock } from './names.ts'
import { decideAlone } from './session.ts'
import type { TextRow } from './statement.ts'
import { plannedOn } from './statement.ts'
import type { TransactionParts } from './transactions.ts'
import { isPatient, SERVER_GRACE_MS } from './transactions.ts'

/** The settings of a transaction that the ledger changes, and puts back in a transaction of others. */
const LOCK = 'lock_timeout'
const PATH = 'search_path'
const ROLE = 'role'

const SET = 'SELECT set_config($1, $2, true)'
const SET_PLACE = `SELECT set_config('${PATH}', $1, true), set_config('${ROLE}', $2, true)`

/** How long an effect that is out of time is waited for before its transaction is rolled back, in ms. */
const LATE_EFFECT_MS = 5_000

/** Transactions that an ORM opens and ends. Every rule is that of the store's own; only statements reach the connection. */
export function createForeign(parts: TransactionParts): ForeignTransactions {
  return { dialect: 'postgres', on: (orm) => createAdopted(parts, orm) }
}

/** Where statements find their tables, and as whom they run: `search_path` and `role`. */
type Place = readonly [path: string, role: string]

const txOfHandle = perHandle<ForeignTx>()

/** What the ledger does in an ORM's transaction. */
interface Surroundings {
  readonly call: TransactionCall
  readonly mark: string
  readonly woken: string[]
  /** Of the claim; null before it. */
  place: Place | null
}

interface Marked {
  readonly xid: string | null
  /** Where the effect has left it; null when that is still the place of the claim. */
  readonly now: Place | null
}

/** One run of an ORM's transaction. */
interface Ground extends Surroundings {
  readonly deadline: Deadline
  /** `maybe` from the moment in which the ORM may send COMMIT. */
  applied: AppliedWord
  /** What the work threw, whatever the ORM makes of it; null when it did not throw. */
  failure: { readonly error: unknown } | null
  began: boolean
  /** The server's number of the transaction, where its end has to be asked for. */
  xid: string | null
}

function createAdopted<Handle>(
  { core, steps, watchers }: TransactionParts,
  orm: OrmTransactions<Handle>,
): AdoptedTransactions<Handle> {
  const { names } = core
  const findTables = findOwnTables(names, 'transaction')
  const place = createSamePlace(core, orm.name)

  const txOf = (handle: Handle) => txOfHandle(handle, () => createForeignTx(orm, handle))

  function sessionOf(handle: Handle, tx: ForeignTx, ground: Surroundings & Partial<Ground>) {
    const { call, woken } = ground
    let patient = isPatient(call)
    async function apply<R extends Request>(request: R): Promise<AppliedDecision<DecisionOf<R>>> {
      try {
        const applied = await decideAlone({ steps, on: tx.on, woken }, request)
        // A caller with little patience for a twin has the usual patience for the rows of its own effect.
        if (!patient) await tx.rows(SET, [LOCK, `${limits.transactionLockMs}`])
        patient = true
        return applied as AppliedDecision<DecisionOf<R>>
      } catch (error) {
        throw core.fault(error, 'no')
      }
    }
    const part = <T>(work: (inner: Session<Handle>) => Promise<T>): Promise<T> => {
      const innerOf = (inner: Handle) => {
        const innerTx = txOf(inner)
        return { tx: innerTx, session: sessionOf(inner, innerTx, ground), end: () => innerTx.close(ended) }
      }
      return inOrmPart(orm, { handle, tx, session }, innerOf, work)
    }
    async function last<T>(work: () => Promise<T>): Promise<T> {
      const { xid, now } = await checkMark(tx, ground)
      if (orm.hooksBeforeCommit === true && ground.xid === null) ground.xid = xid
      if (now === null) return await work()
      // The effect moved to the schema or the role of a tenant: the outcome belongs to where the claim was made.
      await tx.rows(SET_PLACE, ground.place ?? now)
      const result = await work()
      await tx.rows(SET_PLACE, now)
      return result
    }
    const session: Session<Handle> = {
      tx: handle,
      sql: tx.sql,
      apply,
      settleLast: (request) => last(() => apply(request)),
      last,
      savepoint: (work) => part(() => work()),
      part,
    }
    return session
  }

  /** Code that kept the connection from elsewhere may have ended the transaction; what follows would be on its own. */
  async function checkMark(tx: ForeignTx, { mark, place }: Surroundings): Promise<Marked> {
    const look = `SELECT current_setting('${MARK}', true) AS mark, pg_current_xact_id_if_assigned()::text AS xid,
      current_setting('${PATH}') AS path, current_setting('${ROLE}') AS role`
    const [row] = await tx.rows(look).catch((error: unknown) => {
      throw core.fault(error, 'no')
    })
    if (row?.['mark'] !== mark) throw lostTransaction()
    const now: Place = [row['path'] ?? '', row['role'] ?? 'none']
    return { xid: row['xid'] ?? null, now: now[0] === place?.[0] && now[1] === place[1] ? null : now }
  }

  /** The server answers COMMIT with ROLLBACK where a statement has failed before it, and no ORM reports that. */
  async function checkCommitted({ xid, call }: Ground): Promise<void> {
    if (xid === null) return
    const [row] = await core.read(call, ({ rows }) => rows('SELECT pg_xact_status($1::xid8) AS status', [xid]))
    if (row?.['status'] === 'aborted') throw abortedError()
  }

  async function begin(tx: ForeignTx, ground: Ground): Promise<void> {
    const { call, mark } = ground
    const serverMs = `${Math.ceil(call.timeoutMs + SERVER_GRACE_MS)}`
    await place.check(tx)
    const [now] = await tx.rows(
      `SELECT set_config('${LOCK}', $1, true), set_config('${MARK}', $2, true),
         set_config('statement_timeout', $3, true), set_config('idle_in_transaction_session_timeout', $3, true),
         current_setting('${PATH}') AS path, current_setting('${ROLE}') AS role`,
      [lockTimeout(call), mark, serverMs],
    )
    ground.place = await findPlace(tx, now)
    await refuseTwin(tx, call)
  }

  /** Where the claim is made, and as whom. */
  async function findPlace(tx: ForeignTx, now: TextRow | undefined): Promise<Place> {
    const [found] = findTables === '' ? [] : await tx.rows(findTables)
    return [found?.['set_config'] ?? now?.['path'] ?? '', now?.['role'] ?? 'none']
  }

  async function refuseTwin(tx: ForeignTx, { refuseTwinOf }: TransactionCall): Promise<void> {
    if (refuseTwinOf === null) return
    const [row] = await tx.rows(`SELECT pg_try_advisory_xact_lock(${recordLock(names, refuseTwinOf)}) AS free`)
    if (row?.['free'] !== 't') throw runningTwin()
  }

  /** Errors of the effect pass unchanged, unless they only repeat that the transaction itself could not continue. */
  function translate(error: unknown, tx: ForeignTx): unknown {
    if (tx.lost !== null) return tx.lost
    if (isOnceError(error)) return error
    if (tx.broken !== null) return errors.storeError(tx.broken, 'no')
    const server = serverErrorIn(orm, error)
    if (server === null && saysConnectionLost(error)) return errors.storeError(error, 'no')
    if (isGone(server)) return lostTransaction(error)
    return isBusy(server) || isSessionOver(server) || isAborted(server) ? errors.storeError(server, 'no') : error
  }

  async function runIn<T>(handle: Handle, ground: Ground, work: (session: Session<Handle>) => Promise<T>): Promise<T> {
    ground.began = true
    const tx = txOf(handle)
    noteSql(handle, tx.sql)
    try {
      await begin(tx, ground)
      const working = tx.outermost(() => work(sessionOf(handle, tx, ground)))
      const result = await inTime(working, ground.deadline, () => tooLong(ground)).catch(async (error: unknown) => {
        if (isOnceError(error, 'transaction_too_long')) await untilQuiet(tx, working)
        throw error
      })
      // A statement that the work did not wait for still belongs to it.
      await tx.idle()
      ground.applied = 'maybe'
      return result
    } catch (error) {
      ground.failure = { error: translate(error, tx) }
      throw ground.failure.error
    } finally {
      tx.close(ended)
    }
  }

  /** The ORM itself failed: it could not begin, or not commit. */
  function ormFailure(error: unknown, { applied, began }: Ground): unknown {
    const server = serverErrorIn(orm, error)
    if (!began) return server === null ? notBegun(orm.name, error) : errors.storeError(server, 'no')
    if (server === null) return isOnceError(error) ? error : errors.storeError(error, applied)
    // What the user's deferred constraints and triggers say at the end is the user's to read.
    return /^(23|P0)/.test(sqlErrorOf(server)?.code ?? '') ? error : errors.storeError(server, applied)
  }

  async function run<T>(ground: Ground, work: (session: Session<Handle>) => Promise<T>): Promise<T> {
    const { call, deadline, woken } = ground
    const running = async () => {
      await place.learn()
      let inside: Promise<T> | null = null
      await orm.open((handle) => (inside = runIn(handle, ground, work)), { timeoutMs: call.timeoutMs })
      // An ORM whose transaction the effect ended may answer at once, and with something else.
      return await (inside ?? Promise.reject(lostTransaction()))
    }
    try {
      const late = () => (ground.began ? tooLong(ground) : notBegun(orm.name, `${deadline.timeoutMs} ms have passed`))
      const result = await inTime(running(), deadline, late)
      await checkCommitted(ground)
      watchers.changed(woken)
      await notifyOthers(woken)
      return result
    } catch (error) {
      if (ground.failure !== null) throw ground.failure.error
      throw ormFailure(error, ground)
    }
  }

  async function notifyOthers(woken: readonly string[]): Promise<void> {
    if (woken.length === 0) return
    const call = { timeoutMs: limits.storeCallMs }
    // A hint: waiters that miss it read again soon.
    await core
      .read(call, ({ connection }) => steps.notify(connection, plannedOn(connection), woken))
      .catch(() => undefined)
  }

  async function within<T>(
    handle: Handle,
    call: TransactionCall,
    work: (session: Session<Handle>) => Promise<T>,
    tablesThere: boolean,
  ) {
    const outer = txOf(handle)
    const ground: Surroundings = { call, mark: randomUUID(), woken: [], place: null }
    try {
      return await inPart(sessionOf(handle, outer, ground), async (session) => {
        const tx = txOf(session.tx)
        await place.check(tx)
        // Inside of the savepoint: whatever undoes it puts these back, too.
        const [before] = await tx.rows(
          `SELECT current_setting('${LOCK}') AS lock, current_setting('${MARK}', true) AS mark,
             current_setting('${PATH}') AS path, current_setting('${ROLE}') AS role`,
        )
        const set = `SELECT set_config('${LOCK}', $1, true), set_config('${MARK}', $2, true)`
        await tx.rows(set, [lockTimeout(call), ground.mark])
        ground.place = await findPlace(tx, before)
        await refuseTwin(tx, call)
        const result = await work(session)
        await tx.rows(set, [before?.['lock'] ?? '0', before?.['mark'] ?? ''])
        if (findTables !== '') await tx.rows(SET, [PATH, before?.['path'] ?? ''])
        return result
      })
    } catch (error) {
      throw withinError(error, outer, tablesThere)
    }
  }

  function withinError(error: unknown, tx: ForeignTx, tablesThere: boolean): unknown {
    if (isOnceError(error, 'store_unavailable') && errors.isSchemaGone(error.cause)) {
      return tablesThere ? noTables(orm.name, error) : tablesToCome(error)
    }
    if (isOnceError(error) && isReadOnly(error.cause)) return readOnly(orm.name, error)
    return sqlErrorOf(error)?.code === '25P01' ? noTransaction(orm.name) : translate(error, tx)
  }

  return {
    run: (work, call) =>
      core.call(call, (deadline) => {
        const state = { applied: 'no' as const, failure: null, began: false, xid: null, place: null }
        return run({ call, deadline, mark: randomUUID(), woken: [], ...state }, work)
      }),
    within: (handle, work, call) => {
      if (!orm.isTransaction(handle)) return Promise.reject(noTransaction(orm.name))
      // Not waited for: the transaction that is open may hold the only connection.
      place.learn().catch(() => undefined)
      const lockMs = Math.min(call.lockMs, orm.claimWaitMs ?? call.lockMs)
      return core.callBeside(call, (tablesThere) =>
        txOf(handle).apart(() => within(handle, { ...call, lockMs }, work, tablesThere)),
      )
    },
    sqlOf: (handle) => sqlApart(orm, handle, txOf, inOwnSchema),
  }

  /** Outside of an effect the path is the user's: ours stands in front of it for one statement only. */
  async function inOwnSchema<T>(sql: ForeignTx['sql'], work: () => Promise<T>): Promise<T> {
    if (findTables === '') return await work()
    const [before] = await sql.query<{ path: string }>(`SELECT current_setting('${PATH}') AS path`)
    await sql.query(findTables)
    const result = await work()
    await sql.query('SELECT set_config(?, ?, true)', [PATH, before?.path ?? ''])
    return result
  }
}

function lockTimeout({ lockMs }: TransactionCall): string {
  return `${Math.max(1, Math.ceil(lockMs))}`
}

function tooLong({ deadline, applied }: Ground): OnceError {
  if (applied === 'maybe') return errors.timeoutError(deadline.timeoutMs, 'maybe')
  return new OnceError('transaction_too_long', `A transaction took more than ${deadline.timeoutMs} ms.`)
}

/**
 * A handle of an ORM may still be usable after its transaction: statements of an effect that is out of time would commit
 * by themselves. So the transaction is made to fail, and kept until the effect has noticed.
 */
async function untilQuiet(tx: ForeignTx, working: Promise<unknown>): Promise<void> {
  const failing = tx.rows(`SELECT concat('onceonly: out of time ', statement_timestamp())::integer`)
  failing.catch(() => undefined)
  const over = new AbortController()
  await Promise.race([
    working.catch(() => undefined),
    pause(LATE_EFFECT_MS, undefined, { signal: over.signal, ref: false }).catch(() => undefined),
  ])
  over.abort()
}

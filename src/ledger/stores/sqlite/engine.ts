import type { BigIntStats } from 'node:fs'
import { statSync } from 'node:fs'
import type { Awaitable } from '../../../runtime/runtime.ts'
import { isOnceError } from '../../core/errors.ts'
import { SECOND } from '../../core/limits.ts'
import type { DecisionOf, Request } from '../../core/request.ts'
import type { MigrateMode } from '../../store/migrations.ts'
import type { AppliedDecision, Call } from '../../store/port.ts'
import type { Clock, TimeSource } from './clock.ts'
import { clockBy } from './clock.ts'
import type { Connection, Connections } from './connection.ts'
import { openConnections } from './connection.ts'
import type { OpenDatabase } from './driver.ts'
import { openBy } from './driver.ts'
import { busy, isBroken, isBusy, replaced, stopped, unavailable } from './errors.ts'
import type { Decider, GroupWriter } from './group.ts'
import { createWriterGroup } from './group.ts'
import type { Lane } from './writer.ts'
import { createWriterQueue, pause } from './writer.ts'

/** `isQuiet`: a renewal of a lease, which no listener waits for. */
type Wrote = (topics: ReadonlySet<string>, isQuiet: boolean) => void

const NONE: ReadonlySet<string> = new Set()

/** Whether a commit waits for the disk: `FULL` does. */
type Sync = 'NORMAL' | 'FULL'

/** What the parts of one SQLite store share: the file, its connections, and the way to its only writer. */
export interface Engine {
  readonly path: string
  readonly clock: Clock
  readonly migrate: MigrateMode
  readonly openFile: OpenDatabase
  /** Short synchronous work on the reader, repeated while another process opens, recovers or closes the file. */
  read<T>(call: Call, work: (reader: Connection) => T): Promise<T>
  /**
   * Calls back after every write of this process but upkeep, whether it changed anything or not, with the topics that it
   * woke; until null is given.
   */
  onWrite(wrote: Wrote | null): void
  /** Whether another process has committed since the last call; also true where that cannot be said. */
  othersCommitted(): boolean
  /** The function that decides requests; given once, before the first of them. */
  decideBy(decider: Decider): void
  /** Decides one request, in one commit with those that wait for the writer at the same time. */
  apply<R extends Request>(request: R, call: Call): Awaitable<AppliedDecision<DecisionOf<R>>>
  /** Runs the work in a transaction of its own, committed before this returns; null when another process holds the lock. */
  tryWrite<G, T>(work: (writer: Connection, given: G) => T, given: G): T | null
  /**
   * Runs one statement without a transaction of its own. Null says for certain that nothing was written: another process
   * holds the lock, or the statement itself was refused and SQLite has undone it. After an error of the file or the disk the
   * commit may still be found there after a crash.
   */
  tryAlone<G, T>(statement: (writer: Connection, given: G) => T | null, given: G): T | null
  /** Undoes what the open transaction of the writer did, and begins another. */
  beginAgain(writer: Connection): void
  /** Calls back with the requests of every group commit, for tests and measurements. */
  onRequests(listener: (requests: readonly Request[]) => void): void
  /**
   * Synchronous work in one write transaction, committed before it answers. Writes in the upkeep lane reach the disk with the
   * next commit of another lane: nothing relies on them.
   */
  write<T>(lane: Exclude<Lane, 'transaction'>, call: Call, work: (writer: Connection) => T): Promise<T>
  /** One statement in the upkeep lane, which commits by itself. */
  writeQuietly<T>(call: Call, statement: (writer: Connection) => T): Promise<T>
  /** A transaction whose work may wait: the work commits, or rolls back, by itself. */
  hold<T>(waitMs: number, work: (connection: Connection) => Promise<T>): Promise<T>
  /** A turn at the only writer for a connection that is not ours: no other of this process writes meanwhile. */
  lend<T>(waitMs: number, work: () => Promise<T>): Promise<T>
  /** Whether the lock of the only writer is free for a connection of ours. */
  isUnlocked(): boolean
  /** Notifies the listener of a commit that another connection made for us. */
  noteWoken(topics: ReadonlySet<string>): void
  /** Whether it is the file that is open here. */
  isOwnFile(path: string): boolean
  /** Refuses when another file has the name of the one that is open. */
  checkFile(): void
  /** Waits for what is under way, then closes the file until it is used again; a file in steady use stays open. */
  rest(): Promise<void>
  /** Waits for what is under way, then closes the file. */
  stop(): Promise<void>
}

/** A file that another ledger writes to all the time is its to close. */
const REST_WAIT_MS = 1 * SECOND

const STAT = { bigint: true, throwIfNoEntry: false } as const

export function createEngine(
  path: string,
  time: TimeSource,
  migrate: MigrateMode = 'auto',
  openFile: OpenDatabase = openBy(undefined),
): Engine {
  const clock = clockBy(time)
  const queue = createWriterQueue()
  let listener: Wrote | null = null
  let versions = { writer: -1, transaction: -1 }
  /** Whether the transaction connection may have committed since the last look at the versions. */
  let heldSince = true
  let connections: Connections | null = null
  /** A disk or file error happened: the connections are reopened as soon as they are idle. */
  let suspect = false
  let held = false
  /** The writer whose commits do not wait for the disk now; null when there is none. */
  let relaxed: Connection | null = null
  /** The file that was opened first: a store serves no other. */
  let file: BigIntStats | undefined
  let stopping: Promise<void> | null = null

  /**
   * A backup that is restored under a running process has another file under the name. Claims would continue in the old one,
   * which no other process sees, so this is checked before every write and read; it takes two microseconds.
   */
  function checkFile(): void {
    if (file === undefined) return
    const found = statSync(path, STAT)
    if (!isSame(found, file)) throw replaced(path)
  }

  /** Opens when first used, and again after trouble, so that a store that was away needs no restart. */
  function current(): Connections {
    if (suspect && !held && connections !== null) {
      closeQuietly(connections)
      connections = null
    }
    if (connections === null) {
      checkFile()
      connections = openConnections(path, clock, migrate, openFile)
      versions = { writer: -1, transaction: -1 }
      file ??= statSync(path, STAT)
      suspect = false
    }
    return connections
  }

  /** Our own error for whatever SQLite said. What is not about the file passes unchanged. */
  function translate(error: unknown, applied: 'no' | 'maybe'): unknown {
    if (isOnceError(error)) return error
    if (isBusy(error)) return busy(path, 0, error)
    if (!isBroken(error)) return error
    suspect = true
    return unavailable(path, error, applied)
  }

  /** Null when another process holds the lock. */
  function begin(which: 'writer' | 'transaction', mode: Sync = 'FULL'): Connection | null {
    try {
      checkFile()
      const connection = (connections === null || suspect ? current() : connections)[which]
      if (which === 'writer') sync(connection, mode)
      connection.held = null
      connection.begin.run()
      return connection
    } catch (error) {
      if (isBusy(error)) return null
      throw translate(error, 'no')
    }
  }

  function wrote({ woken }: Connection): void {
    listener?.(woken, false)
    woken.clear()
  }

  /**
   * A connection's `data_version` counts the commits of all others. Only a commit of another process, or one of each of
   * our two writers, changes both of theirs.
   */
  function othersCommitted(): boolean {
    const { writer, transaction } = current()
    const before = versions
    const byWriter = dataVersionOf(writer)
    // Then only our own writer can have committed, and the other connection has nothing to add.
    const onlyWriter = !heldSince && byWriter === before.writer
    versions = { writer: byWriter, transaction: onlyWriter ? UNKNOWN : dataVersionOf(transaction) }
    heldSince = false
    return byWriter !== before.writer && versions.transaction !== before.transaction
  }

  /** From here on a change that the writer sees may be our own; up to here it was not. */
  function noteHeld(): void {
    const { writer, transaction } = current()
    const isUnknown = !heldSince && versions.transaction === UNKNOWN
    if (isUnknown && dataVersionOf(writer) === versions.writer) versions.transaction = dataVersionOf(transaction)
    heldSince = true
  }

  const beginWriter = () => begin('writer') !== null
  const beginTransaction = () => begin('transaction') !== null
  const beginUpkeep = () => begin('writer', 'NORMAL') !== null
  const lateTransaction = (waitedMs: number) => busy(path, waitedMs)
  // Not `store_busy`: a batch that comes back with that is taken apart and tried again, and no part would fare better.
  const lateWrite = (waitedMs: number) =>
    unavailable(path, new Error(`its only writer was taken for ${Math.round(waitedMs)} ms`), 'no')

  /**
   * Before every use of the writer, and only where it changes something: an idle process renews leases again and again. A
   * writer that cannot be set back to full durability is not used again.
   */
  function sync(writer: Connection, mode: Sync): void {
    if ((writer === relaxed) === (mode === 'NORMAL')) return
    try {
      // Not prepared: SQLite sets it while it compiles the statement, and only then.
      writer.db.exec(`PRAGMA synchronous = ${mode}`)
      relaxed = mode === 'NORMAL' ? writer : null
    } catch (error) {
      suspect = true
      throw translate(error, 'no')
    }
  }

  function commitOrUndo<G, T>(writer: Connection, work: (writer: Connection, given: G) => T, given: G): T {
    let committing = false
    try {
      const result = work(writer, given)
      committing = true
      writer.commit.run()
      return result
    } catch (error) {
      // A COMMIT that failed on its way to the disk may still be found there after a crash.
      const fault = translate(error, committing ? 'maybe' : 'no')
      if (!undo(writer)) suspect = true
      if (!mayBeWritten(fault)) writer.woken.clear()
      throw fault
    }
  }

  /** In the transaction that has begun. */
  function commit<G, T>(work: (writer: Connection, given: G) => T, given: G): T {
    const { writer } = current()
    const result = commitOrUndo(writer, work, given)
    wrote(writer)
    return result
  }

  function tryAlone<G, T>(statement: (writer: Connection, given: G) => T | null, given: G): T | null {
    if (connections === null || suspect) return null
    checkFile()
    const { writer } = connections
    sync(writer, 'FULL')
    try {
      const answer = statement(writer, given)
      if (answer !== null && (listener !== null || writer.woken.size > 0)) wrote(writer)
      return answer
    } catch (error) {
      if (isOnceError(error) || !isBroken(error)) return null
      if (!undo(writer)) suspect = true
      throw translate(error, 'maybe')
    }
  }

  const groupWriter: GroupWriter = {
    begin: beginWriter,
    decider: null,
    late: lateWrite,
    translate: (error) => translate(error, 'no'),
    commit,
  }
  const group = createWriterGroup(queue, groupWriter)

  async function stop(): Promise<void> {
    await group.stop(() => stopped(path))
    await queue.idle()
    close()
  }

  function close(): void {
    if (connections !== null) closeQuietly(connections)
    connections = null
  }

  async function rest(): Promise<void> {
    await queue.idle(REST_WAIT_MS)
    if (!queue.serving) close()
  }

  return {
    path,
    migrate,
    openFile,
    clock,
    checkFile,
    onWrite: (given) => void (listener = given),
    decideBy: (given) => void (groupWriter.decider = given),
    othersCommitted,
    tryAlone,
    tryWrite: (work, given) => {
      const writer = begin('writer')
      if (writer === null) return null
      const result = commitOrUndo(writer, work, given)
      if (listener !== null || writer.woken.size > 0) wrote(writer)
      return result
    },
    beginAgain: (writer) => {
      undo(writer)
      writer.held = null
      writer.begin.run()
    },
    read: async (call, work) => {
      const startedMs = performance.now()
      for (let tries = 0; ; tries++) {
        if (stopping !== null) throw stopped(path)
        try {
          checkFile()
          return work(current().reader)
        } catch (error) {
          if (!isBusy(error)) throw translate(error, 'no')
          if (performance.now() - startedMs >= call.timeoutMs) throw unavailable(path, error, 'no')
        }
        await pause(tries)
      }
    },
    // Each request was decided by the step of its own kind, and an error rejects.
    apply: <R extends Request>(request: R, { timeoutMs }: Call) =>
      group.write(request, timeoutMs) as Awaitable<AppliedDecision<DecisionOf<R>>>,
    onRequests: (listener) =>
      group.onFlush((members) => listener(members.filter((member): member is Request => member.kind !== 'work'))),
    write: async <T>(lane: Exclude<Lane, 'transaction'>, call: Call, work: (writer: Connection) => T) => {
      if (stopping !== null) throw stopped(path)
      if (lane === 'batch') {
        const ended = (await group.write({ kind: 'work', work }, call.timeoutMs)) as { readonly value: T }
        return ended.value
      }
      const turn = { lane, waitMs: call.timeoutMs, late: lateWrite, begin: beginUpkeep }
      return await queue.run(turn, () => commitOrUndo(current().writer, work, null))
    },
    writeQuietly: async <T>(call: Call, statement: (writer: Connection) => T) => {
      if (stopping !== null) throw stopped(path)
      const done: { value: T }[] = []
      const begin = () => {
        try {
          checkFile()
          const { writer } = current()
          sync(writer, 'NORMAL')
          done.push({ value: statement(writer) })
          listener?.(NONE, true)
          return true
        } catch (error) {
          if (isBusy(error)) return false
          throw translate(error, 'maybe')
        }
      }
      await queue.run({ lane: 'upkeep', waitMs: call.timeoutMs, late: lateWrite, begin }, () => undefined)
      return (done[0] as { value: T }).value
    },
    hold: (waitMs, work) => {
      if (stopping !== null) return Promise.reject(stopped(path))
      const turn = { lane: 'transaction', waitMs, late: lateTransaction, begin: beginTransaction } as const
      return queue.run(turn, async () => {
        const { transaction } = current()
        held = true
        noteHeld()
        try {
          return await work(transaction)
        } catch (error) {
          // The user's own errors pass unchanged; ours were translated where they happened.
          if (isOnceError(error, 'store_unavailable')) suspect = true
          if (!mayBeWritten(error)) transaction.woken.clear()
          throw error
        } finally {
          // Whatever happened in there, the next transaction on this connection starts clean.
          if (!undo(transaction)) suspect = true
          held = false
          wrote(transaction)
        }
      })
    },
    lend: (waitMs, work) => {
      if (stopping !== null) return Promise.reject(stopped(path))
      const open = () => {
        checkFile()
        current()
        return true
      }
      return queue.run({ lane: 'transaction', waitMs, late: lateTransaction, begin: open }, work)
    },
    isUnlocked: () => {
      const free = beginWriter()
      if (free && !undo(current().writer)) suspect = true
      return free
    },
    noteWoken: (topics) => listener?.(topics, false),
    isOwnFile: (other) => isSame(statSync(other, STAT), file),
    rest,
    stop: () => {
      stopping ??= stop()
      return stopping
    },
  }
}

function isSame(found: BigIntStats | undefined, file: BigIntStats | undefined): boolean {
  return found !== undefined && found.ino === file?.ino && found.dev === file.dev
}

/** Of a version that was not asked for. */
const UNKNOWN = -2

/** What was rolled back for certain wakes no listener. */
function mayBeWritten(error: unknown): boolean {
  return isOnceError(error) && error.applied === 'maybe'
}

/** False when even that failed: only closing the connection helps then. */
function undo({ db }: Connection): boolean {
  try {
    if (db.isTransaction) db.exec('ROLLBACK')
    return !db.isTransaction
  } catch {
    return false
  }
}

export function dataVersionOf({ statements }: Connection): number {
  return Number(statements.prepared('PRAGMA data_version').get()?.['data_version'])
}

function closeQuietly(connections: Connections): void {
  try {
    connections.close()
  } catch {
    // What cannot even be closed is left to the process.
  }
}

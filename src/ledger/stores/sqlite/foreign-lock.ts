import { OnceError } from '../../core/errors.ts'
import type { Deadline } from '../../store/deadline.ts'
import { TOUCH_META } from './clock.ts'
import type { Engine } from './engine.ts'
import { busy, isBusy, isOutdated } from './errors.ts'
import type { Send } from './foreign-decide.ts'
import { sqliteErrorIn } from './foreign-tx.ts'
import { pause } from './writer.ts'

/** Of one ORM: whether it is on our file, by a driver whose locks ours can see. */
export interface Same {
  readonly orm: string
  checked: boolean
}

/**
 * Takes the lock of the only writer for the ORM's transaction. Not with its own busy time-out: SQLite would sleep inside of the
 * call, and with it every request of this process, and the writer that is waited for may be one of them.
 */
export async function takeWriter(send: Send, engine: Engine, deadline: Deadline, same: Same): Promise<void> {
  const [own] = await send('PRAGMA busy_timeout')
  await send('PRAGMA busy_timeout = 0')
  try {
    for (let tries = 0; !(await tryTake(send, engine, deadline, same)); tries++) await pause(tries)
  } finally {
    await send(`PRAGMA busy_timeout = ${Number(own?.['timeout'] ?? 0)}`)
  }
}

async function tryTake(send: Send, engine: Engine, deadline: Deadline, same: Same): Promise<boolean> {
  try {
    await send(TOUCH_META)
    return true
  } catch (error) {
    const cause = sqliteErrorIn(error)
    if (!isBusy(cause)) {
      await checkFile(send, engine, same)
      throw error
    }
    if (isOutdated(cause)) throw outdated(same.orm, error)
    if (deadline.remainingMs() === 0) throw busy(engine.path, deadline.timeoutMs, error)
    return false
  }
}

function outdated(orm: string, cause: unknown): OnceError {
  const text = `This transaction of ${orm} has read what another one has changed since, so it cannot write.`
  return new OnceError('store_busy', text, { cause, applied: 'no', next: 'Roll it back, and repeat it.' })
}

/** Once, in a transaction that has the lock of the only writer: then no connection of ours may get it. */
export async function checkSameFile(send: Send, engine: Engine, same: Same): Promise<void> {
  if (same.checked) return
  await checkFile(send, engine, same)
  if (engine.isUnlocked()) {
    const text = `${same.orm} opens ${engine.path} by another driver than the store, and the locks of one do not hold for the other: commits would be lost. Give both the same: sqliteStore(path, { driver: Database }) with the \`Database\` of better-sqlite3 that ${same.orm} has.`
    throw new OnceError('bad_option', text, { details: { option: 'driver' } })
  }
  same.checked = true
}

async function checkFile(send: Send, engine: Engine, { orm, checked }: Same): Promise<void> {
  if (checked) return
  const [row] = await send(`SELECT file FROM pragma_database_list WHERE name = 'main'`)
  const file = String(row?.['file'] ?? '')
  if (file !== '' && engine.isOwnFile(file)) return
  const text = `${orm} is connected to ${file === '' ? 'a database in memory' : file}; the store is on ${engine.path}. Connect both to the same file.`
  throw new OnceError('bad_option', text, { details: { option: 'transactions' } })
}

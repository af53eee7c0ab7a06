import type { OnceError } from '../../core/errors.ts'
import type { Deadline } from '../deadline.ts'
import type { HeldConnection } from './calls.ts'
import type { SqlServerErrors } from './errors.ts'

/** A driver's connection, as far as every driver is alike. */
interface DriverConnection {
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

/** A connection while a store holds it. Once broken it answers nothing more, and the pool closes it. */
export interface Held extends HeldConnection {
  /** Why it broke, or null while it is good. */
  readonly broken: Error | null
  /** True while a statement is under way. */
  readonly waiting: boolean
  /** Sends a statement. It rejects when the connection is destroyed, whether or not the driver ever hears from the server. */
  send<T>(statement: () => Promise<T>): Promise<T>
  /** Calls `act` when it breaks; only for a connection that is never given back in order. */
  whenBroken(act: () => void): void
}

export interface HeldEnds {
  close(reason: Error): void
  giveBack(): void
}

export function holdConnection(driver: DriverConnection, { close, giveBack }: HeldEnds): Held {
  const underWay = new Set<(reason: Error) => void>()
  let noticed: (() => void) | null = null
  let broken: Error | null = null
  let returned = false

  function destroy(reason: Error): void {
    if (returned) return
    returned = true
    broken = reason
    for (const reject of underWay) reject(reason)
    underWay.clear()
    // The listener stays: a closing socket may still report an error, which would be unhandled without it.
    close(reason)
    noticed?.()
  }

  // A connection outside the pool crashes the process without an error listener.
  driver.on('error', destroy)
  return {
    get broken() {
      return broken
    },
    get waiting() {
      return underWay.size > 0
    },
    send: (statement) => {
      if (broken !== null) return Promise.reject(broken)
      return new Promise((resolve, reject) => {
        underWay.add(reject)
        statement().then(
          (result) => {
            underWay.delete(reject)
            resolve(result)
          },
          (error: unknown) => {
            underWay.delete(reject)
            reject(error as Error)
          },
        )
      })
    },
    destroy,
    whenBroken: (act) => {
      noticed = act
      if (broken !== null) act()
    },
    release: () => {
      if (returned) return
      returned = true
      driver.removeListener('error', destroy)
      giveBack()
    },
  }
}

/** A connection from the pool, in time. One that arrives after its caller gave up goes straight back. */
export function borrowInTime<D>(
  connect: () => Promise<D>,
  deadline: Deadline,
  errors: Pick<SqlServerErrors, 'timeoutError' | 'connectError'>,
  giveBack: (driver: D) => void,
  /** Set while every connection of the pool is in use: then the server is not to blame. */
  crowded: () => OnceError | null = () => null,
): Promise<D> {
  return new Promise((resolve, reject) => {
    let late = false
    const off = deadline.onPassed(() => {
      late = true
      reject(crowded() ?? errors.timeoutError(deadline.timeoutMs, 'no'))
    })
    connect().then(
      (driver) => {
        off()
        if (late) giveBack(driver)
        else resolve(driver)
      },
      (error: unknown) => {
        off()
        reject(crowded() ?? errors.connectError(error))
      },
    )
  })
}

/** A connection that takes statements without values. */
interface Commanded extends HeldConnection {
  command(text: string): Promise<unknown>
}

/** Runs the work in a transaction of ours. A connection that cannot even roll back is closed, which does the same. */
export async function inTransaction<T>(connection: Commanded, begin: string, work: () => Promise<T>): Promise<T> {
  await connection.command(begin)
  let result: T
  try {
    result = await work()
  } catch (error) {
    await rollBack(connection)
    throw error
  }
  await connection.command('COMMIT')
  return result
}

export async function rollBack(connection: Commanded): Promise<void> {
  await connection.command('ROLLBACK').catch((error: unknown) => connection.destroy(error as Error))
}

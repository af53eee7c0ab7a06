import { randomBytes } from 'node:crypto'
import type { MariadbPool } from 'onceonly/mariadb'

/** The part of the driver that tests use. It is loaded by name, because only these tests need it. */
interface Driver {
  createPool(settings: Readonly<Record<string, unknown>>): TestPool
}

export interface TestPool extends MariadbPool {
  query(text: string, values?: unknown[]): Promise<unknown>
  end(): Promise<void>
}

const DRIVER: string = 'mariadb'

export interface TestDatabase {
  readonly name: string
  /** A pool of its own, as a process has it. */
  pool(settings?: Readonly<Record<string, unknown>>): TestPool
  drop(): Promise<void>
}

/** A fresh, empty database for one test case. */
export async function createDatabase(url: string): Promise<TestDatabase> {
  const { createPool } = (await import(DRIVER)) as Driver
  const { hostname: host, port, username: user } = new URL(url)
  const settings = { host, port: Number(port), user, connectionLimit: 10 }
  const database = `onceonly_test_${randomBytes(8).toString('hex')}`
  const pools: TestPool[] = []
  const run = async (statement: string) => {
    const admin = createPool({ ...settings, connectionLimit: 1 })
    try {
      await admin.query(statement)
    } finally {
      await admin.end()
    }
  }
  await run(`CREATE DATABASE ${database}`)
  return {
    name: database,
    pool: (own = {}) => {
      const pool = createPool({ ...settings, database, ...own })
      pools.push(pool)
      return pool
    },
    drop: async () => {
      await Promise.all(pools.map((pool) => pool.end()))
      await run(`DROP DATABASE ${database}`)
    },
  }
}

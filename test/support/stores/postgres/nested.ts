import assert from 'node:assert/strict'
import { drizzle } from 'drizzle-orm/node-postgres'
import fc from 'fast-check'
import { Kysely, PostgresDialect } from 'kysely'
import type { Ledger } from 'onceonly'
import { final } from 'onceonly'
import type { PostgresStore, PostgresTx } from 'onceonly/postgres'
import type { PoolClient } from 'pg'
import { CALL, claimOf } from './store.ts'

/** Random effects that open parts of their transaction in every way there is, and what must be left of them. */

/** How a part is opened and ended. */
type Opener = 'kysely' | 'drizzle' | 'statements' | 'savepoint'

type Step =
  | { readonly kind: 'insert' }
  /** A statement that the server refuses; the part that contains it is undone. */
  | { readonly kind: 'violation' }
  | { readonly kind: 'part'; readonly by: Opener; readonly steps: readonly Step[]; readonly throws: boolean }

export interface History {
  readonly steps: readonly Step[]
  readonly ends: 'returns' | 'throws' | 'final'
}

export function kyselyOn<T>(tx: PostgresTx): Kysely<T> {
  const pool = { connect: async () => tx.client as PoolClient, end: async () => {} }
  return new Kysely<T>({ dialect: new PostgresDialect({ pool }) })
}

export const drizzleOn = (tx: PostgresTx) => drizzle(tx.client as unknown as PoolClient)

export class Undone extends Error {}

const opens: Readonly<Record<Opener, (tx: PostgresTx, work: () => Promise<void>) => Promise<void>>> = {
  kysely: (tx, work) => kyselyOn(tx).transaction().execute(work),
  drizzle: (tx, work) => drizzleOn(tx).transaction(work),
  savepoint: (tx, work) => tx.inSavepoint(work),
  statements: async (tx, work) => {
    await tx.query('BEGIN')
    try {
      await work()
    } catch (error) {
      await tx.query('ROLLBACK')
      throw error
    }
    await tx.query('COMMIT')
  },
}

export const { history } = fc.letrec<{ step: Step; history: History }>((tie) => ({
  step: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 4, arbitrary: fc.constant<Step>({ kind: 'insert' }) },
    { weight: 1, arbitrary: fc.constant<Step>({ kind: 'violation' }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('part' as const),
        by: fc.constantFrom<Opener>('kysely', 'drizzle', 'statements', 'savepoint'),
        steps: fc.array(tie('step'), { maxLength: 4 }),
        throws: fc.boolean(),
      }),
    },
  ),
  history: fc.record({
    steps: fc.array(tie('step'), { maxLength: 5 }),
    ends: fc.constantFrom('returns', 'returns', 'throws', 'final'),
  }),
}))

/** Runs the steps, and returns which of their rows must stay; names are counted, so that every row is another one. */
export async function perform(
  tx: PostgresTx,
  steps: readonly Step[],
  name: () => string,
  before: () => Promise<void> = async () => undefined,
): Promise<string[]> {
  const rows: string[] = []
  for (const step of steps) {
    await before()
    switch (step.kind) {
      case 'insert': {
        const row = name()
        await tx.query('INSERT INTO orders VALUES (?)', [row])
        rows.push(row)
        break
      }
      case 'violation':
        await tx.query('INSERT INTO orders VALUES (?), (?)', ['twice', 'twice'])
        break
      case 'part': {
        let inside: readonly string[] = []
        const part = opens[step.by](tx, async () => {
          inside = await perform(tx, step.steps, name, before)
          if (step.throws) throw new Undone('undone')
        })
        // Whatever it threw, the part is undone, and the other parts continue.
        const kept = await part.then(
          () => true,
          () => false,
        )
        if (kept) rows.push(...inside)
      }
    }
  }
  return rows
}

interface NestedOptions {
  readonly store: PostgresStore
  readonly ledger: Ledger<PostgresTx>
  readonly histories: number
}

/** After every history the table holds exactly the rows of the effects whose record says that they succeeded. */
export async function checkNestedHistories({ store, ledger, histories }: NestedOptions): Promise<void> {
  const place = ledger.operation<null>({ name: 'order.create', effect: 'transaction' })
  const expected: string[] = []
  let count = 0
  await fc.assert(
    fc.asyncProperty(history, async ({ steps, ends }) => {
      const key = `k${++count}`
      let names = 0
      const kept: { rows: readonly string[] | null } = { rows: null }
      const ended = place.run({ tenant: 'acme', caller: 'web', key }, null, async ({ tx }) => {
        const rows = await perform(tx, steps, () => `${key}-${++names}`)
        if (ends === 'throws') throw new Undone('undone')
        if (ends === 'final') throw final(new Undone('refused'))
        kept.rows = rows
      })
      const executed = await ended.then(
        () => true,
        () => false,
      )
      const [record] = (await store.claims.read([claimOf(key).id], CALL)).records
      if (executed) expected.push(...(kept.rows ?? assert.fail('it ended without its rows')))
      const failed = ends === 'final' ? ['failed_terminal', undefined] : [undefined]
      assert.ok((executed ? ['succeeded'] : failed).includes(record?.state), `${record?.state}`)
      const found = await store.sql.query<{ name: string }>('SELECT name FROM orders')
      assert.deepEqual(found.map(({ name }) => name).toSorted(), expected.toSorted())
    }),
    { numRuns: histories, endOnFailure: true },
  )
  assert.ok(expected.length > histories / 4, `only ${expected.length} rows in ${histories} histories`)
}

import type { OrmRow } from './app/row.ts'

/** Loaded when they are run: the ORMs are installed by the tests. */
const rowFiles = {
  drizzle: './app/drizzle.ts',
  knex: './app/knex.ts',
  kysely: './app/kysely.ts',
  'mikro-orm': './app/mikro-orm.ts',
  'postgres-js': './app/postgres-js.ts',
  prisma: './app/prisma.ts',
  sequelize: './app/sequelize.ts',
  sqlite: './app/sqlite.ts',
  typeorm: './app/typeorm.ts',
} as const

/** On one kind of database. `ONCEONLY_ORM` runs one of them. */
export async function allRows(on: 'server' | 'file'): Promise<readonly OrmRow[]> {
  const only = process.env['ONCEONLY_ORM']
  const files = Object.entries(rowFiles).filter(
    ([name]) => (name === 'sqlite') === (on === 'file') && (only === undefined || only === name),
  )
  const rows = await Promise.all(
    files.map(async ([file, path]) => {
      const module: Readonly<Record<string, unknown>> = await import(path)
      const found = Object.values(module).find((value) => Array.isArray(value)) as readonly OrmRow[]
      return found.map((row) => ({ ...row, file }))
    }),
  )
  return rows.flat()
}

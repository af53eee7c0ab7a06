import type { SqlRow } from '../store/sql.ts'

/** A statement that needs no compiling, as Kysely's executor takes it. */
interface Compiled {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly query: {
    readonly kind: 'RawNode'
    readonly sqlFragments: readonly string[]
    readonly parameters: readonly []
  }
  readonly queryId: { readonly queryId: string }
}

/** What is used of a transaction. */
export interface KyselySender {
  withoutPlugins(): KyselySender
  executeQuery(query: Compiled): Promise<{ readonly rows: readonly SqlRow[] }>
}

/** Without plugins, which would rename the columns of our statements. */
export async function queryByKysely(
  handle: KyselySender,
  text: string,
  values: readonly unknown[],
): Promise<readonly SqlRow[]> {
  const query = { kind: 'RawNode', sqlFragments: [text], parameters: [] } as const
  const compiled = { sql: text, parameters: values, query, queryId: { queryId: 'onceonly' } }
  return (await handle.withoutPlugins().executeQuery(compiled)).rows
}

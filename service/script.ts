import type { Script, SqlRow, SqlTx, SqlValue } from 'onceonly'

/** One statement of a script, with its rows. */
export function* ask<Row = SqlRow>(text: string, values: readonly SqlValue[] = []): Script<readonly Row[]> {
  return (yield { text, values }) as readonly Row[]
}

/** Runs a script as a part of a transaction that is open already. */
export async function runIn<T>({ query }: Pick<SqlTx, 'query'>, script: Script<T>): Promise<T> {
  let step = script.next()
  while (step.done !== true) step = script.next(await query(step.value.text, step.value.values))
  return step.value
}

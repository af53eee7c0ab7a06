import type { Script, SqlRow, SqlTx, SqlValue } from './sql.ts'

/** On a synchronous driver: without a turn of the event loop in between. */
export function runAtOnce<T>(
  script: Script<T>,
  query: (text: string, values: readonly SqlValue[]) => readonly SqlRow[],
): T {
  let step = script.next()
  while (step.done !== true) step = script.next(query(step.value.text, step.value.values))
  return step.value
}

export async function runIn<T>({ query }: Pick<SqlTx, 'query'>, script: Script<T>): Promise<T> {
  let step = script.next()
  while (step.done !== true) step = script.next(await query(step.value.text, step.value.values))
  return step.value
}

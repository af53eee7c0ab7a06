import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { OrmRow } from './app/row.ts'

/** Kills a process while the ORM's transactions are open in it: one that the ledger opened, and one of the user. */
export async function killInside(
  { file, name }: Pick<OrmRow, 'file' | 'name'>,
  url: string,
  key: string,
  which: 'run' | 'within' | 'both',
): Promise<void> {
  const worker = fileURLToPath(import.meta.resolve('./worker.ts'))
  const flags = ['--conditions=onceonly-source', '--disable-warning=ExperimentalWarning']
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  // It loads no other ORM.
  env['ONCEONLY_ORM'] = file
  const child = spawn(process.execPath, [...flags, worker, name, url, key, which], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exit = once(child, 'exit')
  const inside = once(child, 'message')
  await Promise.race([inside, exit])
  assert.equal(child.exitCode, null, 'it waits inside of its transactions')
  child.kill('SIGKILL')
  await exit
}

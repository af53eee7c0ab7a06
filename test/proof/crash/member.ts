import { writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { createInterface } from 'node:readline'
import type { ChildLine } from '../../support/crew.ts'

/** The child's side of a crew: its task, the lines that it prints, and its orders. */
export function readTask<Task>(): Task {
  const text = process.argv[2]
  if (text === undefined) throw new Error('This program is started by a test.')
  // Everything is loaded by now, and a process that is killed could not keep it for the next one.
  flushCompileCache()
  return JSON.parse(text) as Task
}

/** Synchronous, so that a line written before a SIGKILL is not lost. */
export function report<Line extends ChildLine>(line: Line): void {
  writeSync(1, `${JSON.stringify(line)}\n`)
}

/** Orders in their order. A parent that is gone ends its children. */
export function listen(): { next(): Promise<unknown> } {
  const orders: unknown[] = []
  const waiting: ((order: unknown) => void)[] = []
  const input = createInterface({ input: process.stdin })
  input.on('line', (line) => {
    const order: unknown = JSON.parse(line)
    const next = waiting.shift()
    if (next === undefined) orders.push(order)
    else next(order)
  })
  input.on('close', () => process.exit(0))
  return {
    next: () => (orders.length > 0 ? Promise.resolve(orders.shift()) : new Promise((resolve) => waiting.push(resolve))),
  }
}

/** On the clock that all processes of one machine share. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

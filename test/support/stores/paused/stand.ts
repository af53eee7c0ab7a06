import { readSync, writeSync } from 'node:fs'
import { StatementSync } from 'node:sqlite'
import { Redis } from 'ioredis'
import { applyScript } from '../../../../src/ledger/stores/redis/apply-script.ts'
import { swapScript } from '../../../../src/ledger/stores/redis/swap-script.ts'

/** Pauses this process before a named statement of SQLite, or a named script of Redis. */

/** Where a process may pause: before the writer of SQLite is taken, and before a script of Redis is sent. */
export type Point = 'BEGIN IMMEDIATE' | 'apply' | 'swap'

/** The pipe to the process that started this one: a byte out says that it is paused, a byte in resumes it. */
export const PIPE = 3

const scripts: Readonly<Record<string, Point>> = {
  [applyScript.sha]: 'apply',
  [applyScript.lua]: 'apply',
  [swapScript.sha]: 'swap',
  [swapScript.lua]: 'swap',
}

let waiting: { readonly point: Point; passes: number } | null = null

/** The next statement of this name waits, after so many have passed. */
export function standBefore(point: Point, passes = 0): void {
  waiting = { point, passes }
}

function pass(name: string | undefined): void {
  if (waiting === null || waiting.point !== name || waiting.passes-- > 0) return
  waiting = null
  // Synchronous, so that the whole process pauses, its timers too.
  writeSync(PIPE, '!')
  readSync(PIPE, Buffer.alloc(1))
}

export function watchStatements(): void {
  const { run } = StatementSync.prototype
  StatementSync.prototype.run = function (this: StatementSync, ...values: unknown[]) {
    pass(this.sourceSQL)
    return Reflect.apply(run, this, values)
  } as typeof run
  const { call } = Redis.prototype
  Redis.prototype.call = function (this: Redis, ...words: Parameters<typeof call>) {
    pass(scripts[String([words[1]].flat()[0])])
    return Reflect.apply(call, this, words)
  } as typeof call
}

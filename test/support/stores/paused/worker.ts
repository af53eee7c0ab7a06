import { isOnceError, succeeded } from 'onceonly'
import { createGuard } from 'onceonly/guard'
import { openPlace, type Place, who } from './place.ts'
import { type Point, standBefore, watchStatements } from './stand.ts'

/** The other process: it runs one part after the other, and pauses where the part says. */

export type Part = 'claim' | 'settle' | 'forget'

watchStatements()
const [, , given = ''] = process.argv
const place = JSON.parse(given) as Place
const { ledger, end } = openPlace(place)
const op = ledger.operation<number>({ name: 'op', effect: 'repeatable', whileRunning: 'conflict' })
const guard = createGuard<string>({
  ledger,
  name: 'mail',
  identity: (text) => ['acme', text],
  onFailed: 'allow',
  waitMs: 0,
})

/** Before its decision is written. On SQLite it is made under the writer, so before that is taken. */
const decided: Point = place.kind === 'redis' ? 'swap' : 'BEGIN IMMEDIATE'
const asked: Point = place.kind === 'redis' ? 'apply' : 'BEGIN IMMEDIATE'

const parts: Readonly<Record<Part, (key: string) => Promise<string>>> = {
  async claim(key) {
    standBefore(decided)
    return (await op.claim(who(key), 1)).kind
  },
  async settle(key) {
    const claimed = await op.claim(who(key), 1)
    if (!('lease' in claimed)) return claimed.kind
    standBefore(decided)
    await claimed.lease.settle(succeeded('first'))
    return 'settled'
  },
  async forget(key) {
    const verdict = await guard.send(key, async (attempt) => {
      await attempt?.attach({ type: 'mail', id: '1' })
      attempt?.failed()
      // The lock stands for its original since it was attached; now it is forgotten.
      standBefore(asked)
    })
    return verdict.kind
  },
}

process.on('message', ({ part, key }: { readonly part: Part; readonly key: string }) => {
  const answer = parts[part](key).catch((error: unknown) => (isOnceError(error) ? error.code : String(error)))
  void answer.then((result) => process.send?.(result))
})
process.on('disconnect', () => void end())

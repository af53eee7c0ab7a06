import { createLedger } from 'onceonly'
import type { IncomingMessage } from 'onceonly/inbox'
import { createInbox } from 'onceonly/inbox'
import type { Address } from '../../../support/place.ts'
import { openStore, sqlStore } from '../../../support/place.ts'
import { readTask, report } from '../../crash/member.ts'
import type { Point } from '../../crash/points.ts'
import { createDeath, mortal } from '../../crash/points.ts'

/** A consumer in a process of its own that handles one delivery, and dies in it if its task says so. */
export interface Task {
  readonly address: Address
  /** What PostgreSQL calls its connections. */
  readonly name: string
  readonly message: IncomingMessage
  readonly dies: Point | null
  readonly delayUs: number
  /** A command of another system, called under the effect key. */
  readonly url: string | null
}

const { address, name, message, dies, delayUs, url } = readTask<Task>()
const death = dies === null ? null : await createDeath(dies, delayUs)
const { store, close } = openStore(address, name)
const ours = sqlStore(death === null ? store : mortal(store, death))
const ledger = createLedger({ store: ours, background: false })
const inbox = createInbox({ ledger, consumer: 'billing', background: false, maxUnfinished: 2 })
// The tables first, so that what dies is the message and not a migration.
await inbox.sweep()
const receipt = await inbox.receive(message, async (_, { tx, effectKey }) => {
  death?.at('effect_before')
  await tx.query('insert into business (key, value) values (?, ?)', [message.id, effectKey])
  if (url !== null) await fetch(url, { method: 'POST', headers: { 'idempotency-key': effectKey }, body: message.body })
  death?.at('effect_after')
})
report({ kind: 'receipt', receipt })
// Its end is under way, from another thread.
if (dies?.endsWith('_sent') === true) await new Promise((resolve) => void setTimeout(resolve, 60_000))
await inbox.stop()
await ledger.stop()
await close()
// Standard input is never read here, and would keep the process.
process.stdin.destroy()

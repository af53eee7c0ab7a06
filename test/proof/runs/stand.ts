import type { Channel } from 'onceonly/run'
import { createEngine, defineRun } from 'onceonly/run'
import type { Address } from '../../support/place.ts'
import { openStore, sqlStore } from '../../support/place.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { listen, readTask, report } from '../crash/member.ts'

/** A process that pauses where its test says: inside a step, between two, after a failure, in a send. */
export interface StandTask {
  readonly address: Address
  readonly name: string
  readonly where: 'inside' | 'between' | 'failing' | 'sending' | 'starting'
  readonly url?: string
}

export const HOUR = 3_600_000
/** The pause must outlast it in real time, and a busy machine must not. */
export const LEASE_MS = 2_000

/** What the same run does in this process, and in the one that takes over. */
export interface Stand {
  inside(): Promise<void>
  between(): Promise<void>
  acted(step: string, attempt: number): void
  readonly failing: boolean
}

export const standing = (stand: Stand) =>
  defineRun('standing', async (run) => {
    const by = await run.step('first', async () => {
      await stand.inside()
      return process.pid
    })
    await stand.between()
    const attempt = await run.step(
      'second',
      { retry: { backoff: 'fixed', baseMs: HOUR } },
      ({ attemptNumber: number }) => {
        stand.acted('second', number)
        if (stand.failing) throw new Error('not yet')
        return number
      },
    )
    return { by, attempt }
  })

/** A provider that takes keys for an hour, over real HTTP. */
export const sending = (url: string) => {
  const channel: Channel<string, string> = {
    name: 'mail',
    offer: { kind: 'native', windowMs: HOUR, comparesBody: false, keepsFailures: false },
    async send(body, { effectKey: key, signal }) {
      const answer = await fetch(url, { method: 'POST', headers: { 'idempotency-key': key }, body, signal })
      return await answer.text()
    },
  }
  return defineRun('sending', async (run) => {
    await run.step('before', () => 'something')
    await run.step('send', { channel }, () => 'a letter')
    return run.step('again', { channel }, () => 'another letter')
  })
}

export const calling = (url: string) =>
  defineRun('calling', (run) =>
    run.step('call', async ({ effectKey: key }) => {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'idempotency-key': key },
        body: String(process.pid),
      })
      return await answer.json()
    }),
  )

async function main(task: StandTask): Promise<void> {
  const orders = listen()
  const stop = async (here: StandTask['where']) => {
    if (task.where !== here) return
    report({ kind: here })
    await orders.next()
  }
  const stand: Stand = {
    inside: () => stop('inside'),
    between: () => stop('between'),
    acted: (step, attempt) => report({ kind: 'acted', step, attempt }),
    failing: task.where === 'failing',
  }
  const url = task.url ?? ''
  const [standRun, sendRun, callRun] = [standing(stand), sending(url), calling(url)]
  const engine = await createEngine({
    ledger: quietLedger(sqlStore(openStore(task.address, task.name).store)),
    runs: [standRun, sendRun, callRun],
    // It is not paused there: on a slow machine a short lease would only hand the run on.
    leaseMs: task.where === 'starting' ? 20 * LEASE_MS : LEASE_MS,
    pollMs: 50,
    on: (event) => {
      // Steps report themselves before they are recorded.
      if (event.kind === 'step') return
      report(event.kind === 'background_failed' ? { ...event, error: String(event.error) } : event)
    },
  })
  if (task.where === 'starting') {
    report({ kind: 'ready' })
    await orders.next()
    const handle = await engine.start(callRun, { runId: 'r', input: null })
    const result = await handle.result()
    report({ kind: 'result', result: JSON.stringify(result) })
  } else if (task.where === 'sending') await engine.start(sendRun, { runId: 'r', input: null })
  else await engine.start(standRun, { runId: 'r', input: null })
}

if (import.meta.main) await main(readTask<StandTask>())

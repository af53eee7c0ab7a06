import type { HttpPlan, RunContext, StepContext } from 'onceonly/run'
import { defineRun, httpChannel, providers } from 'onceonly/run'

/** Ten steps of all kinds, each of which a provider can count. The same in every process. */
export interface ParcelInput {
  readonly url: string
  readonly number: number
}

const keyed = httpChannel({ name: 'keyed', provider: providers.http })
// Takes no keys; as JSON, so that a plan of any shape fits.
const blind = httpChannel({ name: 'blind', provider: { ...providers.twilio, body: 'json' } })

const retry = { attempts: 50, backoff: 'fixed', baseMs: 50 } as const

export const parcel = defineRun('parcel', async (run, { url, number }: ParcelInput) => {
  const plan = (what: string): HttpPlan => ({ url, body: `${number} ${what}` })
  const call = async (what: string, { effectKey, signal }: Pick<StepContext, 'effectKey' | 'signal'>) => {
    const answer = await fetch(url, { method: 'POST', headers: { 'idempotency-key': effectKey }, body: what, signal })
    return await answer.json()
  }
  const visit = (branch: RunContext, id: string) => branch.step(id, { retry }, (context) => call(id, context))
  await visit(run, 'reserve')
  await run.step('invoice', { channel: keyed, retry }, () => plan('invoice'))
  await run.step('post', { channel: blind, retry }, () => plan('post'))
  await run.all('sides', {
    left: async (branch) => {
      await visit(branch, 'pack')
      await visit(branch, 'label')
    },
    right: async (branch) => {
      await branch.step('notify', { channel: keyed, retry }, () => plan('notify'))
      await branch.step('text', { channel: blind, retry }, () => plan('text'))
    },
  })
  for (let turn = 0; turn < 2; turn++) await visit(run, 'scan')
  await run.step('close', { channel: keyed, retry }, () => plan('close'))
  return number
})

/** Steps that carry a key, by path and tick; the others are counted by their body. */
export const keyedSteps = [
  ['reserve', 0],
  ['invoice', 0],
  ['sides/left/pack', 0],
  ['sides/left/label', 0],
  ['sides/right/notify', 0],
  ['scan', 0],
  ['scan', 1],
  ['close', 0],
] as const

/** As the provider sees them: JSON of what the plan says. */
export const blindBodies = (number: number) => [JSON.stringify(`${number} post`), JSON.stringify(`${number} text`)]

export const stepsOfParcel = keyedSteps.length + blindBodies(0).length

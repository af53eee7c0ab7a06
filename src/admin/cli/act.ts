import { failed, succeeded } from '../../ledger/claim.ts'
import { rerun } from '../../ledger/operator.ts'
import type { RunOperator } from '../../runs/operate.ts'
import { answerOf } from './answer.ts'
import { type Asked, identityOf, named, operatorCommand } from './operator.ts'
import { plain, type Shown } from './output.ts'
import { Usage } from './usage.ts'

/** Of the three endings, those that say something more; each may leave it out. */
const ENDINGS_WITH_VALUES = ['succeeded', 'failed']
const WHICH = 'TENANT CALLER OPERATION KEY | --id RECORD_ID'

export const releaseCommand = operatorCommand({
  usage: `release ${WHICH}`,
  about: 'Takes a running claim away from its holder: the next attempt runs, under the same effect keys.',
  options: named,
  run: (asked) =>
    onRecord(
      asked,
      'Release',
      (identity) => asked.admin.release(asked.actor, identity, fenceOf(identity)),
      'Released.',
    ),
})

export const forgetCommand = operatorCommand({
  usage: `forget ${WHICH}`,
  about:
    'Makes an identity new again, with new effect keys: a provider cannot tell the next attempt from a new command.\nAlso releases the lock of a guard.',
  options: named,
  run: (asked) =>
    onRecord(asked, 'Forget', (identity) => asked.admin.forget(asked.actor, identity, fenceOf(identity)), 'Forgotten.'),
})

export const resolveCommand = operatorCommand({
  usage: `resolve ${WHICH} | --run RUN_ID --step KEY   --succeeded [JSON] | --failed [WHY] | --rerun`,
  about: `Ends an unknown outcome of a record, a message or a step of a run, after you have found out.

  --run, --step      the step of a run, by its key; \`onceonly unknowns\` prints the whole command
  --succeeded [JSON] it happened; retries are answered with this value (null, when it is left out). On an HTTP route
                     they get 200 with the value as their body, or 409 \`response-not-stored\` without a value
  --status 201       what the retries of a route are answered with instead of 200
  --header 'N: V'    a header beside it, such as 'Location: /charges/1'; may be repeated
  --failed [WHY]     it was validly refused; retries are told why
  --rerun            it did not happen: the next attempt runs, under the same effect keys`,
  options: {
    ...named,
    run: { type: 'string' },
    step: { type: 'string' },
    succeeded: { type: 'string' },
    status: { type: 'string' },
    header: { type: 'string', multiple: true },
    failed: { type: 'string' },
    rerun: { type: 'boolean' },
  },
  optionalValues: ENDINGS_WITH_VALUES,
  async run(asked) {
    const ending = endingOf(asked)
    const runId = asked.text('run')
    if (runId !== undefined) return onStep(asked, runId, ending)
    return onRecord(
      asked,
      `Resolve as ${ending.kind}:`,
      (identity) => asked.admin.resolve(asked.actor, identity, ending, fenceOf(identity)),
      'Resolved.',
    )
  },
})

type Named = Awaited<ReturnType<typeof identityOf>>
const fences = new WeakMap<Named, number>()

/** What the person saw is what is acted on: whatever changed in between is refused. */
function fenceOf(identity: Named): { ifFence?: number } {
  const ifFence = fences.get(identity)
  return ifFence === undefined ? {} : { ifFence }
}

async function onRecord(
  asked: Asked,
  verb: string,
  act: (identity: Named) => Promise<void>,
  done: string,
): Promise<Shown> {
  const identity = await identityOf(asked)
  const found = await asked.admin.inspect(identity)
  if (found === null) return { data: null, text: 'Nothing is recorded there.', status: 1 }
  const { record } = found
  fences.set(identity, record.fence)
  const what = plain(`${identity.operation} of ${identity.tenant}/${identity.caller} under the key ${identity.key}`)
  await asked.confirm(`${verb} ${what}, which is ${record.state}?`)
  await act(identity)
  if (asked.admin.audit === null) {
    process.stderr.write(`The ${asked.store.name} store keeps no audit: note yourself that it was you.\n`)
  }
  return { data: { done: true, id: record.id }, text: done }
}

/** A step speaks of what it did in the words of its run. */
async function onStep(asked: Asked, runId: string, ending: ReturnType<typeof endingOf>): Promise<Shown> {
  const { admin, store } = asked
  const { runs } = admin
  if (runs === null) throw new Usage(`The ${store.name} store has no runs: they need SQL.`)
  const key = asked.text('step')
  if (key === undefined) throw new Usage('Which step? Say --step KEY; `onceonly unknowns` has it.')
  const run = await runs.get(runId)
  const step = run.steps.find((each) => each.key === key)
  if (step === undefined) return { data: null, text: 'This run has no step with this key.', status: 1 }
  const named = plain(`the step ${step.id}, tick ${step.tick}, of the run ${runId}`)
  await asked.confirm(`Resolve as ${ending.kind}: ${named}, which is ${step.state}?`)
  const to = resolutionOf(ending)
  await admin.act(asked.actor, 'run.resolve', { runId, key, to: to.kind }, () => runs.resolve(runId, key, to))
  return { data: { done: true, runId, key }, text: 'Resolved.' }
}

function resolutionOf(ending: ReturnType<typeof endingOf>): Parameters<RunOperator['resolve']>[2] {
  switch (ending.kind) {
    case 'succeeded':
      return { kind: 'succeeded', result: ending.value }
    case 'failed':
      return ending
    case 'rerun':
      return { kind: 'not_done' }
  }
}

function endingOf({ values, text }: Asked) {
  const given = ['succeeded', 'failed', 'rerun'].filter((name) => values[name] !== undefined)
  if (given.length !== 1) throw new Usage('Say one of --succeeded, --failed and --rerun.')
  const value = text('succeeded')
  const status = text('status')
  const headers = Array.isArray(values['header']) ? values['header'].map(String) : []
  const asAnswer = status !== undefined || headers.length > 0
  if (asAnswer && value === undefined) throw new Usage('--status and --header belong to --succeeded.')
  if (asAnswer && text('run') !== undefined) throw new Usage('A step has a result, and no --status or --header.')
  if (value !== undefined && asAnswer) {
    return succeeded(answerOf({ value: value === '' ? undefined : valueOf(value), status, headers }))
  }
  if (value !== undefined) return succeeded(valueOf(value))
  const why = text('failed')
  return why === undefined ? rerun : failed(new Error(why === '' ? 'A person found that it failed' : why))
}

function valueOf(text: string): unknown {
  if (text === '') return null
  try {
    return JSON.parse(text)
  } catch {
    throw new Usage(`--succeeded ${text} is no JSON; a text is written as '"text"'.`)
  }
}

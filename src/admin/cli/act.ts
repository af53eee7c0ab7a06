import { failed, succeeded } from '../../ledger/claim.ts'
import { rerun } from '../../ledger/operator.ts'
import { type Asked, identityOf, named, operatorCommand } from './operator.ts'
import { plain, type Shown } from './output.ts'
import { Usage } from './usage.ts'

const WHICH = 'TENANT CALLER OPERATION KEY | --id RECORD_ID'

export const releaseCommand = operatorCommand({
  usage: `release ${WHICH}`,
  about: 'Takes a running claim away from its holder: the next attempt runs, under the same effect keys.',
  options: named,
  run: (asked) =>
    onRecord(
      asked,
      'Release',
      (identity) => asked.operate.release(asked.actor, identity, fenceOf(identity)),
      'Released.',
    ),
})

export const forgetCommand = operatorCommand({
  usage: `forget ${WHICH}`,
  about:
    'Makes an identity new again, with new effect keys: a provider cannot tell the next attempt from a new command.\nAlso releases the lock of a guard.',
  options: named,
  run: (asked) =>
    onRecord(
      asked,
      'Forget',
      (identity) => asked.operate.forget(asked.actor, identity, fenceOf(identity)),
      'Forgotten.',
    ),
})

export const resolveCommand = operatorCommand({
  usage: `resolve ${WHICH} --succeeded [JSON] | --failed [WHY] | --rerun`,
  about: `Settles an outcome that nobody knows, after you have found out.

  --succeeded JSON  it happened; retries are answered with this value (null, when it is "")
  --failed WHY      it was validly refused; retries are told why
  --rerun           it did not happen: the next attempt runs, under the same effect keys`,
  options: { ...named, succeeded: { type: 'string' }, failed: { type: 'string' }, rerun: { type: 'boolean' } },
  async run(asked) {
    const ending = endingOf(asked)
    return onRecord(
      asked,
      `Resolve as ${ending.kind}:`,
      (identity) => asked.operate.resolve(asked.actor, identity, ending, fenceOf(identity)),
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
  const found = await asked.operate.inspect(identity)
  if (found === null) return { data: null, text: 'Nothing is recorded there.', status: 1 }
  const { record } = found
  fences.set(identity, record.fence)
  const what = plain(`${identity.operation} of ${identity.tenant}/${identity.caller} under the key ${identity.key}`)
  await asked.confirm(`${verb} ${what}, which is ${record.state}?`)
  await act(identity)
  if (asked.operate.audit === null) {
    process.stderr.write(`The ${asked.store.name} store keeps no audit: note yourself that it was you.\n`)
  }
  return { data: { done: true, id: record.id }, text: done }
}

function endingOf({ values, text }: Asked) {
  const given = ['succeeded', 'failed', 'rerun'].filter((name) => values[name] !== undefined)
  if (given.length !== 1) throw new Usage('Say one of --succeeded, --failed and --rerun.')
  const value = text('succeeded')
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

import { decodeValue, encodeValue } from '../core/codec.ts'
import { OnceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { Branch, Place } from './branch.ts'
import { mustBeFree } from './branch.ts'
import type { RunContext } from './context.ts'
import { checkName } from './definition.ts'
import type { Execution } from './execution.ts'
import { pathOf } from './key.ts'

/** The context of a branch below. */
type Inside = (branch: Branch) => RunContext

type Branches = Readonly<Record<string, (run: RunContext) => Promise<unknown>>>

/** Branches side by side. All of them end before the first failure, by name, is thrown: so it is always the same. */
export async function forkAll(
  execution: Execution,
  inside: Inside,
  parent: Branch,
  id: string,
  branches: Branches,
): Promise<unknown> {
  mustBeFree(parent, id)
  const names = namesOf(id, branches)
  parent.pending = id
  const ends = await Promise.allSettled(
    names.map((name) => {
      const path = pathOf(pathOf(parent.path, id), name)
      return runBranch(execution.branch(path, parent.signal), inside, branches[name])
    }),
  ).finally(() => {
    parent.pending = null
  })
  const results: Record<string, unknown> = {}
  for (const [index, end] of ends.entries()) {
    if (end.status === 'rejected') throw end.reason
    results[names[index] as string] = end.value
  }
  return results
}

/** The winner is recorded before anybody sees it, so that it wins again however the next execution interleaves. */
export async function forkRace(
  execution: Execution,
  inside: Inside,
  place: Place,
  branches: Branches,
): Promise<unknown> {
  const names = namesOf(place.stepId, branches)
  const recorded = place.recorded?.result ?? null
  if (recorded !== null) return decodeValue(recorded)
  const losers = new AbortController()
  const signal = AbortSignal.any([place.branch.signal, losers.signal])
  const won = await Promise.any(
    names.map(async (name) => ({
      winner: name,
      value: await runBranch(execution.branch(pathOf(place.stepId, name), signal), inside, branches[name]),
    })),
  ).catch((error: unknown) => {
    throw error instanceof AggregateError ? (error.errors[0] as unknown) : error
  })
  const encoded = encodeValue(won)
  if ('problem' in encoded)
    throw new OnceError('bad_input', `What ${place.stepId} won cannot be recorded: ${encoded.problem}.`)
  losers.abort(new Error(`Another branch of ${place.stepId} was first.`))
  await execution.put(execution.entry(place, { state: 'succeeded', result: encoded.text }))
  return won
}

async function runBranch(branch: Branch, inside: Inside, body: Branches[string] | undefined): Promise<unknown> {
  if (body === undefined) throw new OnceError('bad_option', `The branch ${branch.path} has no function.`)
  return body(inside(branch))
}

function namesOf(id: string, branches: Branches): string[] {
  checkName('branch', id.split('/').at(-1))
  const names = Object.keys(branches).sort()
  for (const name of names) checkName('branch', name)
  if (names.length === 0 || names.length > limits.runBranches) {
    throw new OnceError('bad_option', `${id} needs 1 to ${limits.runBranches} branches.`)
  }
  return names
}

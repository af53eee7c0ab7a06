import type { FieldError } from '../http/problem.ts'
import type { GivenStep, Step } from './step.ts'

export type Arm = 'then' | 'else'

/** Goes through the steps in the order in which one lead comes to them. */
export interface Walk {
  readonly step: Step | null
  /** Moves past the present step; of a branch, by one of its arms. */
  pass(arm: Arm | null): void
}

export function startWalk(steps: readonly Step[]): Walk {
  /** Where arms lead that were not taken: a lead that only comes along passes them over. */
  const closed = new Set<string>()
  let at = 0

  function jumpOf(step: Step, arm: Arm | null): string | null | undefined {
    if (step.type !== 'branch') return step.next
    const [taken, other] = arm === 'then' ? [step.then, step.else] : [step.else, step.then]
    if (typeof other === 'string' && other !== taken) closed.add(other)
    return taken
  }

  return {
    get step() {
      return steps[at] ?? null
    },
    pass(arm) {
      const step = steps[at]
      if (step === undefined) return
      const jump = jumpOf(step, arm)
      if (jump === null) at = steps.length
      else if (jump !== undefined) at = steps.findIndex(({ id }) => id === jump)
      else {
        at += 1
        while (closed.has(steps[at]?.id ?? '')) at += 1
      }
    },
  }
}

interface Jump {
  readonly from: number
  readonly to: number
  readonly field: string
}

/** Jumps that a lead could take again and again, each by its field. Only a jump back can close a circle. */
export function complaintsAboutCircles(steps: readonly GivenStep[]): FieldError[] {
  const jumps = jumpsOf(steps)
  return jumps
    .filter(({ from, to }) => to <= from && reaches(steps, jumps, to, from))
    .map(({ field }) => ({ field, detail: 'leads back to a step before it, so that the sequence would never end' }))
}

function jumpsOf(steps: readonly GivenStep[]): Jump[] {
  const positions = new Map(steps.map(({ id }, position) => [id, position]))
  return steps.flatMap((step, from) =>
    targetsOf(step).flatMap(([name, id]) => {
      const to = typeof id === 'string' ? positions.get(id) : undefined
      return to === undefined ? [] : [{ from, to, field: `steps[${from}].${name}` }]
    }),
  )
}

/** The fields of a step that name another one. */
export function targetsOf(step: GivenStep): readonly (readonly [name: string, id: string | null | undefined])[] {
  return step.type === 'branch'
    ? [
        ['then', step.then],
        ['else', step.else],
      ]
    : [['next', step.next]]
}

function reaches(steps: readonly GivenStep[], jumps: readonly Jump[], from: number, goal: number): boolean {
  const ends = new Set(jumps.map(({ to }) => to))
  const seen = new Set<number>()
  const open = [from]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (at === goal) return true
    const step = steps[at]
    if (step === undefined || seen.has(at)) continue
    seen.add(at)
    open.push(...jumps.filter((jump) => jump.from === at).map(({ to }) => to))
    // Along, and past every step that may be passed over.
    if (targetsOf(step).some(([, id]) => id === undefined)) {
      let below = at + 1
      open.push(below)
      while (ends.has(below)) open.push(++below)
    }
  }
  return false
}

import { DAY } from '../../../../src/ledger/core/limits.ts'
import type { Request, Resolution } from '../../../../src/ledger/core/request.ts'
import type { Late, Process, Scene, World } from '../../../support/ledger/transition/world.ts'
import { claimOf, ended, LEASE_MS, releaseOf, settleOf, TICK } from '../../../support/ledger/transition/world.ts'
import { aged, deliver } from './deliver.ts'
import { differentProcesses } from './key.ts'

/** One thing that can happen next, with the world that it leads to. */
export interface Next {
  /** The process that does it, or none. */
  readonly who?: number
  readonly label: string
  readonly world: World
}

/** Of processes that are alike, what the first does leads to the same worlds as what the others do. */
export function nextWorlds(scene: Scene, world: World): Next[] {
  const next: Next[] = []
  for (const process of differentProcesses(world)) next.push(...processSteps(scene, world, process))
  next.push(...timeSteps(scene, world), ...operatorSteps(scene, world))
  return next
}

function processSteps(scene: Scene, world: World, process: Process): Next[] {
  return [...phaseSteps(scene, world, process), ...lateSteps(scene, world, process)]
}

function phaseSteps(scene: Scene, world: World, process: Process): Next[] {
  switch (process.phase) {
    case 'idle': {
      if (process.attempt >= scene.attempts) return []
      const attempt = process.attempt + 1
      return [step('claims', world, { ...process, attempt, phase: 'claiming', sentAt: world.now })]
    }
    case 'claiming':
      return claiming(scene, world, process)
    case 'releasing':
      return releasing(scene, world, process)
    case 'holding':
      return holding(scene, world, process)
    case 'settling':
      return settling(scene, world, process)
  }
}

function claiming(scene: Scene, world: World, process: Process): Next[] {
  const request = claimOf(scene, process)
  const { world: after, decision } = deliver(scene, world, request, process)
  const granted = decision.kind === 'first_attempt' || decision.kind === 'reclaimed'
  const informed: Process = granted
    ? {
        ...process,
        phase: 'holding',
        grant: decision.lease,
        started: request.start,
        deadline: process.sentAt + LEASE_MS,
      }
    : ended(process)
  const next = [
    step(`is answered ${decision.kind}`, after, informed),
    step('loses the answer to its claim', after, process),
    ...withLate(scene, world, process, request).flatMap((each) => [
      step(`gives up${lateLabel(each)}`, world, { ...each, phase: 'releasing', sentAt: 0 }),
      step(`crashes${lateLabel(each)}`, world, ended(each)),
    ]),
  ]
  if (process.sentAt < world.now) {
    for (const each of withLate(scene, world, process, request)) {
      next.push(step(`claims again${lateLabel(each)}`, world, { ...each, sentAt: world.now }))
    }
  }
  return next
}

function releasing(scene: Scene, world: World, process: Process): Next[] {
  const { world: after } = deliver(scene, world, releaseOf(scene, process), process)
  return [
    step('has released', after, ended(process)),
    step('loses the answer to its release', after, process),
    step('crashes', world, ended(process)),
  ]
}

function holding(scene: Scene, world: World, process: Process): Next[] {
  const alive = world.now < process.deadline
  const next = [step('crashes', world, ended(process))]
  if (!process.ran) next.push(step('gives up', world, { ...ended(process), phase: 'releasing' }))
  if (alive && !process.started) next.push(...fenced(scene, world, process, 'start'))
  if (alive && process.started) next.push(...fenced(scene, world, process, 'renew'))
  if (alive && process.started && !process.ran && !process.revoked) {
    next.push(step('runs its effect', ranIn(scene, world, process), { ...process, ran: true }))
  }
  if (alive && process.ran && scene.policy.onAbandoned === 'hold_attached') {
    next.push(...fenced(scene, world, process, 'attach'))
  }
  if (process.ran) {
    for (const to of scene.settlements) next.push(step(`settles ${to}`, world, { ...process, phase: 'settling', to }))
  }
  return next
}

/** Where only what was named is held, an effect that has named nothing may be repeated. */
function ranIn({ policy }: Scene, world: World, { grant }: Process): World {
  const mayHaveRun = world.ghost.mayHaveRun || policy.onAbandoned !== 'hold_attached'
  return { ...world, ghost: { ...world.ghost, mayHaveRun, incarnation: grant?.incarnation ?? null } }
}

function fenced(scene: Scene, world: World, process: Process, kind: 'start' | 'renew' | 'attach'): Next[] {
  const { grant } = process
  if (grant === null) return []
  const { id, claimId, fence } = grant
  const holder = { id, claimId, fence }
  const request: Request =
    kind === 'attach'
      ? { kind, ...holder, pointer: { type: 'thing', id: 'made' } }
      : { kind, ...holder, leaseMs: LEASE_MS }
  const { world: after, decision } = deliver(scene, world, request, process)
  const deadline = kind === 'attach' ? process.deadline : world.now + LEASE_MS
  const informed = decision.kind === 'applied' ? { ...process, started: true, deadline } : ended(process)
  return [
    step(`sends ${kind}: ${decision.kind}`, after, informed),
    step(`loses the answer to its ${kind}`, after, process),
  ]
}

function settling(scene: Scene, world: World, process: Process): Next[] {
  const { grant, to } = process
  if (grant === null || to === null) return []
  const request = settleOf(grant, to)
  const { world: after, decision } = deliver(scene, world, request, process)
  return [
    step(`has settled ${to}: ${decision.kind}`, after, ended(process)),
    step('loses the answer to its settle', after, process),
    ...withLate(scene, world, process, request).map((each) => step(`crashes${lateLabel(each)}`, world, ended(each))),
  ]
}

function lateSteps(scene: Scene, world: World, process: Process): Next[] {
  const { late } = process
  if (late === null) return []
  const { world: after, decision } = deliver(scene, world, late, process)
  return [step(`its late ${late.kind} arrives: ${decision.kind}`, after, { ...process, late: null })]
}

/** The request is gone, or a copy of it may still arrive. One late copy at a time is enough to be surprised by. */
function withLate(scene: Scene, { processes }: World, process: Process, late: Late): Process[] {
  return scene.late && processes.every((each) => each.late === null) ? [process, { ...process, late }] : [process]
}

function lateLabel({ late }: Process): string {
  return late === null ? '' : `, a copy of its ${late.kind} still on its way`
}

function step(label: string, world: World, process: Process): Next {
  const processes = world.processes.with(process.index, process)
  return { who: process.index, label, world: { ...world, processes } }
}

function timeSteps(scene: Scene, world: World): Next[] {
  const reconciled = deliver(scene, world, { kind: 'reconcile', id: 'record' }, null)
  const next = [
    { label: 'time passes', world: { ...world, now: world.now + TICK } },
    { label: `the reconciler looks: ${reconciled.decision.kind}`, world: reconciled.world },
  ]
  if (scene.late) next.push({ label: 'a long time passes', world: { ...world, now: world.now + 2 * DAY } })
  const { stored, now } = world
  if (stored !== null && 'goneAt' in stored && stored.goneAt <= now) {
    next.push({ label: 'the sweep removes the record', world: { ...aged(world), stored: null } })
  }
  return next
}

function operatorSteps(scene: Scene, world: World): Next[] {
  const next: Next[] = []
  const { ghost } = world
  const outcome = { kept: 'response', data: 'operator' } as const
  const answers = [{ kind: 'succeeded', outcome }, { kind: 'failed', outcome }, { kind: 'rerun' }] as const
  if (ghost.actions < scene.actions) {
    for (const to of answers) {
      const request: Request = { kind: 'resolve', id: 'record', by: 'operator', ifFence: null, probeFence: null, to }
      const { world: after, decision } = deliver(scene, world, request, null)
      if (decision.kind === 'done') next.push({ label: `an operator resolves: ${to.kind}`, world: after })
    }
  }
  if (ghost.actions < scene.actions) {
    for (const onlyRunning of [true, false]) {
      const request: Request = { kind: 'forget', id: 'record', by: 'operator', ifFence: null, onlyRunning }
      const { world: after, decision } = deliver(scene, world, request, null)
      if (decision.kind === 'done')
        next.push({ label: onlyRunning ? 'an operator releases' : 'an operator forgets', world: after })
    }
  }
  if (scene.policy.onAbandoned === 'probe') next.push(...probeSteps(scene, world))
  return next
}

function probeSteps(scene: Scene, world: World): Next[] {
  const { ghost } = world
  if (ghost.probeFence === null) {
    if (ghost.probes >= scene.probes) return []
    const request: Request = { kind: 'probe', id: 'record', claimId: `probe.${ghost.probes}`, leaseMs: LEASE_MS }
    const { world: after, decision } = deliver(scene, world, request, null)
    return decision.kind === 'probe_granted' ? [{ label: 'a probe begins', world: after }] : []
  }
  const outcome = { kept: 'response', data: 'probe' } as const
  const answers: Resolution[] = [
    { kind: 'succeeded', outcome },
    { kind: 'rerun' },
    { kind: 'cannot_tell', probeAfterMs: TICK },
  ]
  const lost = { label: 'the probe is lost', world: { ...world, ghost: { ...ghost, probeFence: null } } }
  const answered = answers.map((to) => {
    const { probeFence } = ghost
    const request: Request = { kind: 'resolve', id: 'record', by: 'probe', ifFence: null, probeFence, to }
    const { world: after, decision } = deliver(scene, world, request, null)
    const done = { ...after, ghost: { ...after.ghost, probeFence: null } }
    return { label: `the probe answers ${to.kind}: ${decision.kind}`, world: done }
  })
  return [lost, ...answered]
}

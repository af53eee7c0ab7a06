import type { Runtime } from '../runtime/runtime.ts'
import type { RecordId } from './core/identity.ts'
import { effectKeyOf } from './core/identity.ts'
import { limits } from './core/limits.ts'
import type { Grant, Resolution } from './core/request.ts'
import { backoffMs } from './core/retry.ts'
import type { Declared } from './declared.ts'
import type { ProbeAnswer } from './definition.ts'
import { cannotTell } from './definition.ts'
import type { Events } from './events.ts'
import { packFailure, packValue } from './outcome.ts'
import type { Requests } from './requests.ts'

/**
 * Asks the operation whether an effect of unknown outcome happened; one process at a time, under a fence of its own.
 */
export interface Prober {
  /** True when the record is not unknown any more. */
  ask(id: RecordId, op: Declared): Promise<boolean>
}

const BACKOFF = { baseMs: limits.probeBaseMs, capMs: limits.probeCapMs }

export function createProber(requests: Requests, runtime: Runtime, events: Events): Prober {
  async function answerOf(
    op: Declared,
    grant: Grant,
    probes: number,
    calls: (count: number) => void,
  ): Promise<ProbeAnswer> {
    const late = Promise.withResolvers<ProbeAnswer>()
    const timer = runtime.setTimer(limits.probeLeaseMs, () => late.resolve(cannotTell), true)
    try {
      const asked = op.probe?.(grant.identity, {
        attempt: grant.attempt,
        effectKey: effectKeyOf(grant.id, grant.incarnation),
        derive: (name) => effectKeyOf(grant.id, grant.incarnation, name),
        pointer: grant.pointer,
        claimedAt: grant.claimedAt,
        probes: probes - 1,
        calls,
      })
      return understood(await Promise.race([asked ?? cannotTell, late.promise]))
    } catch (error) {
      events.emit({ kind: 'background_failed', what: 'probe', error })
      return cannotTell
    } finally {
      timer.cancel()
    }
  }

  /** Probes are written by users: an invalid answer is reported, and the probe is asked again later. */
  function understood(answer: unknown): ProbeAnswer {
    const given = (answer ?? {}) as { answer?: unknown; kind?: unknown; error?: unknown }
    if (given.kind === 'failed') return { answer: 'failed', error: given.error }
    const words: readonly unknown[] = ['happened', 'failed', 'prevented', 'not_found', 'cannot_tell']
    if (words.includes(given.answer)) return answer as ProbeAnswer
    events.emit({
      kind: 'background_failed',
      what: 'probe',
      error: new TypeError('A probe gave no answer that we know.'),
    })
    return cannotTell
  }

  function resolutionOf(op: Declared, answer: ProbeAnswer, grant: Grant, probes: number, now: number): Resolution {
    switch (answer.answer) {
      case 'happened': {
        const { outcome, pointer } = packValue(op, { value: answer.value })
        return { kind: 'succeeded', outcome, pointer }
      }
      case 'failed':
        return { kind: 'failed', outcome: packFailure(answer.error) }
      case 'prevented':
        return { kind: 'rerun' }
      case 'not_found':
        // The attempt may still be on its way to the provider until its longest duration has passed.
        if (now >= grant.claimedAt + op.maxRunMs + limits.leaseGraceMs) return { kind: 'rerun' }
        return { kind: 'cannot_tell', probeAfterMs: backoffMs(probes, BACKOFF, runtime.random()) }
      case 'cannot_tell':
        return { kind: 'cannot_tell', probeAfterMs: backoffMs(probes, BACKOFF, runtime.random()) }
    }
  }

  return {
    async ask(id, op) {
      if (op.probe === undefined) return false
      const request = { kind: 'probe', id, claimId: runtime.newId(), leaseMs: limits.probeLeaseMs } as const
      const { decision, now } = await requests.apply(request)
      if (decision.kind === 'unchanged') return false
      const { lease, fence, probes } = decision
      let calls = 0
      const answer = await answerOf(op, lease, probes, (count) => void (calls += count))
      const to = resolutionOf(op, answer, lease, probes, now)
      const word = { kind: 'resolve', id, by: 'probe', ifFence: null, probeFence: fence, to } as const
      const resolved = await requests.apply(calls === 0 ? word : { ...word, calls })
      events.emit({ kind: 'probed', identity: lease.identity, answer: answer.answer })
      return resolved.decision.kind === 'done' && to.kind !== 'cannot_tell'
    },
  }
}

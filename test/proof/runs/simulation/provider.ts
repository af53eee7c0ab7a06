import { notDone } from 'onceonly'
import type { Channel, Offer, StepContext, Verified } from 'onceonly/run'
import { MINUTE, SECOND } from '../../../../src/ledger/core/limits.ts'
import type { SimulatedProcess, Simulation } from '../../../support/simulation.ts'

/** What is to be sent, and for which step of which run: so that the world recognizes copies, whatever their keys are. */
export interface Letter {
  readonly step: string
  /** Never gets through: every attempt fails with an unknown outcome. */
  readonly cursed: boolean
}

/** Everything outside that steps act on: it counts what really happened. */
export interface Outside {
  /** How often something really happened for a step. */
  performed(step: string): number
  /** How often it was asked. */
  asked(step: string): number
  channel(process: SimulatedProcess, kind: ChannelKind): Channel<Letter, string>
}

export const channelKinds = ['keyed', 'compared', 'kept', 'verified', 'blind'] as const
export type ChannelKind = (typeof channelKinds)[number]

/** How long a key is known. Shorter than in life, so that less has to happen until it is forgotten. */
const WINDOW_MS = 10 * MINUTE

const offers: Readonly<Record<ChannelKind, Offer>> = {
  keyed: { kind: 'native', windowMs: WINDOW_MS, comparesBody: false, keepsFailures: false },
  compared: { kind: 'native', windowMs: WINDOW_MS, comparesBody: true, keepsFailures: false },
  kept: { kind: 'native', windowMs: WINDOW_MS, comparesBody: true, keepsFailures: true },
  verified: { kind: 'correlate' },
  blind: { kind: 'none' },
}

interface Known {
  readonly at: number
  readonly refused: boolean
}

export function createOutside(simulation: Simulation, isCalm: () => boolean): Outside {
  const { random } = simulation
  const keys = new Map<string, Known>()
  const done = new Map<string, number>()
  const asks = new Map<string, number>()
  const trouble = (probability: number) => !isCalm() && random.chance(probability)
  const latencyMs = () => random.below(50)

  function serve({ step, cursed }: Letter, offer: Offer, key: string): 'done' | 'refused' | 'lost' | 'silent' {
    const lost = () => (random.chance(0.3) ? 'silent' : 'lost')
    if (cursed) return 'lost'
    const now = simulation.now()
    const known = offer.kind === 'native' ? keys.get(key) : undefined
    const isKnown = known !== undefined && now - known.at < WINDOW_MS
    // It may be too busy to look whether it knows the key.
    if (trouble(0.2)) {
      if (offer.kind === 'native' && offer.keepsFailures && !isKnown) keys.set(key, { at: now, refused: true })
      return 'refused'
    }
    if (trouble(0.15)) return lost()
    if (!isKnown) {
      done.set(step, (done.get(step) ?? 0) + 1)
      keys.set(key, { at: now, refused: false })
    } else if (known.refused) return 'refused'
    return trouble(0.25) ? lost() : 'done'
  }

  function send(
    process: SimulatedProcess,
    letter: Letter,
    offer: Offer,
    { effectKey: key }: StepContext,
  ): Promise<string> {
    return new Promise((resolve, reject) => {
      asks.set(letter.step, (asks.get(letter.step) ?? 0) + 1)
      // The worst moment to die in: it is sent, and no process knows.
      if (trouble(0.1)) simulation.timer(random.below(100), process.crash)
      simulation.timer(latencyMs(), () => {
        const outcome = serve(letter, offer, key)
        if (outcome === 'silent') return
        const retryAfterMs = random.pick([0, 20 * SECOND, 4 * MINUTE, 11 * MINUTE])
        process.runtime.setTimer(
          latencyMs(),
          () => {
            if (outcome === 'done') resolve(letter.step)
            else if (outcome === 'lost') reject(new Error('the line went dead'))
            else reject(notDone(new Error('too many requests'), { retryAfterMs }))
          },
          false,
        )
      })
    })
  }

  return {
    performed: (step) => done.get(step) ?? 0,
    asked: (step) => asks.get(step) ?? 0,
    channel(process, kind) {
      const offer = offers[kind]
      const verify = ({ step }: Letter) =>
        new Promise<Verified<string>>((resolve) => {
          simulation.timer(latencyMs(), () => {
            const found = trouble(0.2) ? 'unknown' : done.has(step) ? 'done' : 'not_done'
            process.runtime.setTimer(latencyMs(), () => resolve({ kind: found, result: step }), false)
          })
        })
      return {
        name: kind,
        offer,
        send: (letter, context) => send(process, letter, offer, context),
        ...(kind === 'verified' ? { verify } : {}),
      }
    },
  }
}

import type { Scene } from '../../../support/ledger/transition/world.ts'
import { firstWorld } from '../../../support/ledger/transition/world.ts'
import type { Next } from './actions.ts'
import { nextWorlds } from './actions.ts'
import { Violation } from './deliver.ts'
import { createKeys } from './key.ts'
import { checkStanding } from './standing.ts'

export interface Explored {
  readonly worlds: number
  readonly steps: number
  /** What was seen on the way: states of the record, and everything that happened, by name. */
  readonly seen: ReadonlySet<string>
  readonly violation: Found | null
}

/** The shortest way to a broken promise. */
export interface Found {
  readonly what: string
  readonly path: readonly string[]
}

interface Node extends Next {
  readonly parent: Node | null
}

/** Breadth first, so that what goes wrong is found by the shortest way to it. */
export function explore(scene: Scene): Explored {
  const first: Node = { world: firstWorld(scene), label: 'nothing', parent: null }
  const keyOf = createKeys()
  const known = new Set([keyOf(first.world)])
  const seen = new Set<string>()
  let steps = 0
  let ring: Node[] = [first]
  while (ring.length > 0) {
    const nextRing: Node[] = []
    for (const node of ring) {
      const { world } = node
      seen.add(`state ${world.stored?.state ?? 'absent'}`)
      const found = guarded(node, () => checkStanding(scene, world))
      if (found !== null) return { worlds: known.size, steps, seen, violation: found }
      try {
        for (const next of nextWorlds(scene, world)) {
          steps += 1
          seen.add(next.label)
          const key = keyOf(next.world)
          if (known.has(key)) continue
          known.add(key)
          nextRing.push({ ...next, parent: node })
        }
      } catch (error) {
        return { worlds: known.size, steps, seen, violation: foundAt(node, error) }
      }
    }
    ring = nextRing
  }
  return { worlds: known.size, steps, seen, violation: null }
}

function guarded(node: Node, check: () => void): Found | null {
  try {
    check()
    return null
  } catch (error) {
    return foundAt(node, error)
  }
}

function foundAt(node: Node, error: unknown): Found {
  if (!(error instanceof Violation)) throw error
  const path: string[] = []
  for (let at: Node | null = node; at !== null; at = at.parent)
    path.unshift(at.who === undefined ? at.label : `process ${at.who}: ${at.label}`)
  return { what: error.message, path }
}

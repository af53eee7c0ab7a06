import type { OwnErased } from 'onceonly/admin'

type Left = OwnErased['left']
type LeftOver = Left['some'][number]

/** How many were erased, and what was left. */
export interface Erased {
  readonly count: number
  readonly left: Left
}

/** Enough to look at; the number says how many there are. */
const NAMED_MOST = 20

/** Collects what was left. */
export function createLeft(): { add(each: LeftOver): void; seen(): Left } {
  const some: LeftOver[] = []
  let count = 0
  return {
    add(each) {
      count++
      if (some.length < NAMED_MOST) some.push(each)
    },
    seen: () => ({ count, some }),
  }
}

export function together(...parts: readonly Left[]): Left {
  return {
    count: parts.reduce((sum, { count }) => sum + count, 0),
    some: parts.flatMap(({ some }) => some).slice(0, NAMED_MOST),
  }
}

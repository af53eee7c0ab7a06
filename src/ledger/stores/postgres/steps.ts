import { createDecide } from './decide.ts'
import { createHold } from './hold.ts'
import { createInsertClaims } from './insert-claims.ts'
import type { Names } from './names.ts'
import { createNotify } from './notify.ts'
import { createRead } from './read.ts'
import { createSettle } from './settle.ts'

/** The statements that decide requests, for batches and for transactions alike. */
export type Steps = ReturnType<typeof createSteps>

export function createSteps(names: Names) {
  return {
    insertClaims: createInsertClaims(names),
    settle: createSettle(names),
    hold: createHold(names),
    read: createRead(names),
    decide: createDecide(names),
    notify: createNotify(names),
  }
}

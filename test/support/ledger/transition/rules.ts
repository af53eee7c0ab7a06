import type { Rules } from './rules-claim.ts'
import { claimRules } from './rules-claim.ts'
import { holderRules } from './rules-holder.ts'
import { operatorRules } from './rules-operator.ts'

/** All rules of the ledger by name; the machine keeps them all, and no machine that was broken on purpose does. */
export const rules: Rules = { ...claimRules, ...holderRules, ...operatorRules }

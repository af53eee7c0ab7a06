import { test } from 'node:test'
import { transition } from '../../../../src/ledger/core/transition.ts'
import { rules } from '../../../support/ledger/transition/rules.ts'

for (const [name, check] of Object.entries(rules)) test(name, () => check(transition))

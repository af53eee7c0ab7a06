import { test } from 'node:test'
import { exploreAll } from './report.ts'

/** A terminal failure is recorded as a success is; the smaller scene has it too. */
const settlements = ['succeeded', 'failed_retryable', 'unknown'] as const
const slow = { timeout: 300_000 }

test('every way of three processes with two attempts each keeps the promises (hold)', slow, () => {
  exploreAll('hold', { actions: 1, late: false, settlements }, [
    'is answered outcome_unknown',
    'an operator resolves: rerun',
    'an operator forgets',
  ])
})

test('so does every way with requests that arrive late (hold)', slow, () => {
  exploreAll('hold', { processes: 2, reserve: true }, [
    'sends start: applied',
    'its late claim arrives: retry_later',
    'its late settle arrives: lease_lost',
  ])
})

test('so does every way with effects that name what they make (hold_attached)', slow, () => {
  exploreAll('hold_attached', { processes: 2, late: false }, [
    'sends attach: applied',
    'loses the answer to its attach',
  ])
})

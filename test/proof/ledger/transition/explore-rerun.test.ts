import { test } from 'node:test'
import { exploreAll } from './report.ts'

/** A terminal failure is recorded as a success is; the smaller scene has it too. */
const settlements = ['succeeded', 'failed_retryable', 'unknown'] as const
const slow = { timeout: 300_000 }

test('every way of three processes with two attempts each keeps the promises (rerun)', slow, () => {
  exploreAll('rerun', { actions: 0, late: false, settlements }, [
    'has settled succeeded: lease_lost',
    'is answered reclaimed',
  ])
})

test('so does every way with requests that arrive late (rerun)', slow, () => {
  exploreAll('rerun', { processes: 2, reserve: true }, [
    'sends start: applied',
    'its late claim arrives: retry_later',
    'its late settle arrives: lease_lost',
  ])
})

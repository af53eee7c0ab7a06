import { test } from 'node:test'
import { exploreAll } from './report.ts'

/** A terminal failure is recorded as a success is; the smaller scene has it too. */
const settlements = ['succeeded', 'failed_retryable', 'unknown'] as const
const slow = { timeout: 300_000 }

test('every way of three processes with two attempts each keeps the promises (probe)', slow, () => {
  exploreAll('probe', { actions: 0, late: false, settlements }, [
    'the probe answers rerun: done',
    'the probe answers succeeded: refused',
  ])
})

test('so does every way with requests that arrive late (probe)', slow, () => {
  exploreAll('probe', { processes: 2, actions: 0 }, ['the probe is lost', 'its late settle arrives: applied'])
})

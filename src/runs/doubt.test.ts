import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDoubt } from './doubt.ts'
import type { Entry, RunRow } from './entry.ts'

const run = (takenBefore: number | null) => ({ takenBefore }) as RunRow
const at = (branch: string, time: number) => ({ branch, at: time }) as Entry

test('nothing is in doubt when every worker before put the run down', () => {
  assert.equal(createDoubt(run(null), [at('', 5)]).since(''), null)
})

test('a dead worker may have acted since it took the run, and not before what is recorded after that', () => {
  assert.equal(createDoubt(run(100), []).since(''), 100)
  assert.equal(createDoubt(run(100), [at('', 50)]).since(''), 100)
  assert.equal(createDoubt(run(100), [at('', 150), at('', 120)]).since(''), 150)
})

test('records above or below a branch count for it, records beside it do not', () => {
  const doubt = createDoubt(run(100), [at('', 110), at('fan/left', 170), at('fan/right/deep', 150)])
  assert.equal(doubt.since('fan/left'), 170)
  assert.equal(doubt.since('fan/right'), 150)
  assert.equal(doubt.since('fan/other'), 110)
  assert.equal(doubt.since('fan/lefty'), 110)
  assert.equal(doubt.since(''), 170)
})

test('what comes after something that we recorded ourselves is not in doubt, unless it is beside it', () => {
  const doubt = createDoubt(run(100), [])
  doubt.wrote('fan/left')
  assert.equal(doubt.since('fan/left'), null)
  assert.equal(doubt.since('fan/left/deep'), null)
  assert.equal(doubt.since(''), null)
  assert.equal(doubt.since('fan/right'), 100)
  doubt.wrote('')
  assert.equal(doubt.since('fan/right'), null)
})
